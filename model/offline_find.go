package model

import (
	"fmt"
	"slices"
	"strings"
)

// searchArgs are those of the tool grep.
type searchArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty"`
	Glob       string `json:"glob,omitempty"`
	Literal    bool   `json:"literal,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Context    int    `json:"context,omitempty"`
	Mode       string `json:"mode,omitempty"` // content, files, count
}

// maxFiles is how many files one request changes at most.
const maxFiles = 50

func parseSearch(word, clause, rest string) step {
	if strings.HasPrefix(rest, "-") || word == "find" && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, "/")) {
		return runStep(clause)
	}
	if s := parseFind(rest, word == "find" || word == "locate"); s != nil {
		return s
	}
	if where, ok := cutFold(skip(rest, "out"), "where "); ok {
		if s := whereIs("where " + where); s != nil {
			return s
		}
	}
	var a searchArgs
	what := searchOptions(rest, &a)
	if where, text, ok := cutOutside(what, " for ", false); ok { // search src for x
		if where = skip(where, "in", "through"); where != "" && !strings.EqualFold(where, "for") {
			var known bool
			if a.Path, a.Glob, known = place(where); known {
				return searchStep(skip(text, "the", "word", "text", "string"), a)
			}
			a.Path, a.Glob = "", ""
		}
	}
	what = skip(what, "for", "all", "the", "word", "text", "string", "lines with", "lines containing", "occurrences of", "where", "out where", "at")
	if files := skip(what, "files with", "files containing", "files that contain", "files which contain", "files mentioning", "files that mention"); files != what {
		what, a.Mode = files, "files"
	}
	if w, where, ok := cutOutside(what, " in ", true); ok {
		if a.Path, a.Glob, ok = place(where); !ok {
			return nil
		}
		what = w
	} else if first, file := cutWord(what); word == "grep" && fileLike(file) && !strings.Contains(file, " ") { // as one types it
		what, a.Path = first, file
	}
	return searchStep(what, a)
}

// searchOptions takes what says how to search off a request.
func searchOptions(what string, a *searchArgs) string {
	for _, s := range []string{"ignoring case", "ignoring the case", "ignore case", "case insensitively", "case-insensitively", "regardless of case"} {
		if before, after, ok := cutOutside(" "+what+" ", " "+s+" ", true); ok {
			what, a.IgnoreCase = strings.Trim(before+" "+after, " ,"), true
		}
	}
	if before, with, ok := cutOutside(what, " with ", true); ok && strings.HasSuffix(with, "context") {
		a.Context = 2
		if n, ok := number(with); ok {
			a.Context = min(n, 10)
		}
		what = before
	}
	return what
}

// searchStep looks for a text, or for a pattern when it is called one.
func searchStep(what string, a searchArgs) step {
	pattern := skip(what, "the pattern", "pattern", "the regex", "regex", "the regular expression", "regular expression")
	a.Literal = pattern == what
	if what = unquote(pattern); what == "" {
		return nil
	}
	a.Pattern = what
	return func(c *chat) error {
		if !c.has("grep") {
			return runStep(grepCommand(a))(c)
		}
		r, err := c.call("grep", a)
		if err != nil {
			return err
		}
		if r.Failed {
			return c.refused("search for "+tick(what), r)
		}
		found := withoutNote(r.Text)
		c.sees("what was found", found, r)
		if nothing(r.Text) {
			c.text = ""
			return c.say("Nothing was found: %s is nowhere in %s.", tick(what), a.where())
		}
		n := lineCount(found)
		if a.Mode == "files" {
			return c.say("%s is in %s:\n\n%s", tick(what), count(n, "file", "files"), block(found, shown))
		}
		return c.say("I found %s in %s:\n\n%s", tick(what), a.where(), block(found, 2*shown))
	}
}

// where is the place of a search, for people.
func (a searchArgs) where() string {
	switch {
	case a.Path == "" && a.Glob == "":
		return "the workspace"
	case a.Glob == "":
		return tick(a.Path)
	case a.Path == "":
		return "the files " + tick(a.Glob)
	}
	return fmt.Sprintf("the files %s of %s", tick(a.Glob), tick(a.Path))
}

// grepCommand is the search as a command, where there is no tool for it.
func grepCommand(a searchArgs) string {
	flags := "-rnI"
	if a.Mode == "files" {
		flags = "-rlI"
	}
	if a.Literal {
		flags += "F"
	} else {
		flags += "E"
	}
	if a.IgnoreCase {
		flags += "i"
	}
	if a.Context > 0 {
		flags += fmt.Sprintf(" -C %d", a.Context)
	}
	if a.Glob != "" {
		flags += " --include=" + shellQuote(a.Glob[strings.LastIndexByte(a.Glob, '/')+1:])
	}
	return "grep " + flags + " --exclude-dir=.git -e " + shellQuote(a.Pattern) + " " + pathQuote(or(a.Path, "."))
}

// nothing reports whether a tool that looks for something says that there is none.
func nothing(text string) bool {
	text = strings.ToLower(strings.TrimLeft(text, "[ \n"))
	return text == "" || strings.HasPrefix(text, "no ") || strings.HasPrefix(text, "nothing")
}

// place is where to look, as people say it: "src", "all go files", "*.md", "the
// project".
func place(where string) (path, glob string, ok bool) {
	where = skip(where, "the", "file", "directory", "folder", "all", "of", "this", "whole", "entire")
	switch strings.ToLower(where) {
	case "", "here", "files", "project", "workspace", "repository", "repo", "code", "every file", "everything", ".":
		return "", "", true
	}
	kind := skip(where, "every")
	for _, s := range []string{" files", " file"} {
		if word, found := strings.CutSuffix(kind, s); found {
			if glob = globOf(word); glob != "" {
				return "", glob, true
			}
		}
	}
	bare := unquote(where)
	if strings.ContainsAny(bare, "*?{") && !strings.Contains(bare, " ") {
		return "", bare, true
	}
	if strings.Contains(bare, " ") && bare == where {
		return "", "", false
	}
	return bare, "", true
}

// globOf is the pattern for files of a kind: "go", ".md", "*.txt", "python".
func globOf(kind string) string {
	kind = unquote(strings.TrimSpace(kind))
	if kind == "" || strings.Contains(kind, " ") {
		return ""
	}
	if strings.Contains(kind, "*") {
		return kind
	}
	ext := strings.ToLower(strings.TrimLeft(kind, "."))
	for _, k := range []struct{ name, ext string }{
		{"python", "py"},
		{"markdown", "md"},
		{"javascript", "js"},
		{"typescript", "ts"},
		{"rust", "rs"},
		{"ruby", "rb"},
		{"yaml", "{yaml,yml}"},
		{"text", "txt"},
		{"shell", "sh"},
		{"c++", "{cc,cpp,hpp}"},
		{"test", ""},
		{"config", ""},
		{"source", ""},
		{"hidden", ""},
	} {
		if ext == k.name {
			if k.ext == "" {
				return ""
			}
			return "*." + k.ext
		}
	}
	if len(ext) > 5 || strings.ContainsAny(ext, "/\\") {
		return ""
	}
	return "*." + ext
}

// parseFind makes a step of a request for files by name, or nil when it is none.
// sure says that the verb may mean names as well as text.
func parseFind(rest string, sure bool) step {
	what := skip(rest, "me", "us", "for", "all", "the", "any", "every", "a", "an", "out", "where")
	what = strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(what, " is"), " are"))
	for _, by := range []struct{ phrase, before, behind string }{
		{"named", "", ""},
		{"called", "", ""},
		{"with the name", "", ""},
		{"matching", "", ""},
		{"like", "", ""},
		{"whose name is", "", ""},
		{"ending in", "*", ""},
		{"ending with", "*", ""},
		{"that end in", "*", ""},
		{"beginning with", "", "*"},
		{"starting with", "", "*"},
		{"with the extension", "*.", ""},
		{"with extension", "*.", ""},
	} {
		for _, files := range []string{"files ", "file "} {
			name, ok := cutFold(what, files+by.phrase+" ")
			name, path, inPlace := cutPlace(name)
			if name = unquote(name); !ok || !inPlace || name == "" {
				continue
			}
			if by.before == "*." {
				name = strings.TrimLeft(name, ".")
			}
			return globStep(by.before+name+by.behind, path)
		}
	}
	what, path, ok := cutPlace(what)
	if !ok {
		return nil
	}
	for _, s := range []string{" files", " file"} {
		if kind, ok := strings.CutSuffix(what, s); ok {
			if glob := globOf(kind); glob != "" {
				return globStep(glob, path)
			}
		}
	}
	what = skip(what, "file", "files")
	if sure && unquote(what) == what && !strings.Contains(what, " ") && (strings.ContainsAny(what, "*?") || fileLike(what)) {
		return globStep(what, path)
	}
	return nil
}

// cutPlace takes "in DIRECTORY" off a request.
func cutPlace(what string) (rest, path string, ok bool) {
	w, where, found := cutOutside(what, " in ", true)
	if !found {
		return strings.TrimSpace(what), "", true
	}
	path, glob, ok := place(where)
	return w, path, ok && glob == ""
}

// whereIs makes a step of "where is X": a file by its name, a word by where it is.
func whereIs(question string) step {
	rest := strings.Trim(skip(question, "where"), "?!. ")
	for _, be := range []string{"is", "are", "do i find", "can i find", "do we", "do i", "does"} {
		if s := skip(rest, be); s != rest {
			rest = s
			break
		}
	}
	what := skip(rest, "the", "file", "files", "word", "function", "type", "method", "variable", "constant", "class", "text", "string")
	if name := unquote(what); !strings.Contains(name, " ") && fileLike(name) {
		return globStep(name, "")
	}
	for _, s := range []string{" defined", " declared", " used", " called", " mentioned", " written", " set", " occur", " occurs", " come from", " comes from"} {
		if word, ok := strings.CutSuffix(what, s); ok {
			word = strings.TrimSuffix(strings.TrimSuffix(word, " is"), " are")
			if word = unquote(word); word != "" && !strings.Contains(word, " ") {
				return searchStep(word, searchArgs{})
			}
		}
	}
	return nil
}

func globStep(name, dir string) step {
	return func(c *chat) error {
		if !c.has("glob") {
			return runStep("find " + pathQuote(or(dir, ".")) + " -not -path '*/.git/*' -name " + shellQuote(name[strings.LastIndexByte(name, '/')+1:]))(c)
		}
		args := map[string]string{"pattern": name}
		if dir != "" {
			args["path"] = dir
		}
		r, err := c.call("glob", args)
		if err != nil {
			return err
		}
		if r.Failed {
			return c.refused("look for "+tick(name), r)
		}
		found := withoutNote(r.Text)
		where := "the workspace"
		if dir != "" {
			where = tick(dir)
		}
		c.sees("what was found", found, r)
		if nothing(r.Text) {
			c.text = ""
			return c.say("There is no file %s in %s.", tick(name), where)
		}
		if n := lineCount(found); n > 1 {
			return c.say("There are %d files %s in %s:\n\n%s", n, tick(name), where, block(found, 60))
		}
		c.seen = strings.TrimSpace(found)
		return c.say("It is %s.", tick(c.seen))
	}
}

// everywhere cuts a change that is meant for many files: "a to b in all go files".
func everywhere(rest string) (body string, where searchArgs, ok bool) {
	if b, at, found := cutOutside(rest, " in ", true); found {
		lower := strings.ToLower(at)
		named := slices.Contains([]string{"all files", "every file", "all the files", "all of the files", "the project", "this project", "the whole project", "the workspace", "the repository", "the repo", "the code", "everything"}, lower) ||
			strings.HasSuffix(lower, " files") || strings.Contains(at, "*")
		if path, glob, ok := place(at); ok && named {
			return skip(b, "all occurrences of", "every occurrence of", "all of", "all", "every", "each"), searchArgs{Path: path, Glob: glob}, true
		}
		return "", searchArgs{}, false
	}
	for _, s := range []string{" across the project", " across the repository", " across the repo", " across all files", " across files", " across the files", " throughout the project", " project-wide", " everywhere"} {
		if b, found := strings.CutSuffix(rest, s); found {
			return skip(b, "all occurrences of", "every occurrence of", "all of", "all", "every", "each"), searchArgs{}, true
		}
	}
	return "", searchArgs{}, false
}

// replaceAllStep changes a text in every file that has it.
func replaceAllStep(where searchArgs, e editArgs) step {
	where.Pattern, where.Literal, where.Mode = e.Old, true, "files"
	return func(c *chat) error {
		files, err := c.filesWith(where)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return c.drop("%s is nowhere in %s, so I changed nothing.", tick(e.Old), where.where())
		}
		if len(files) > maxFiles {
			return c.drop("%s is in %d files, and I change at most %d at once. Name a directory or a kind of files: “replace all %s with %s in *.go”.", tick(e.Old), len(files), maxFiles, e.Old, e.New)
		}
		for i, f := range files {
			r, err := c.call("edit_file", map[string]any{"path": f, "edits": []editArgs{e}})
			if err != nil {
				return err
			}
			if r.Failed {
				if i > 0 {
					if err := c.say("I changed %s so far: %s.", count(i, "file", "files"), tick(strings.Join(files[:i], "`, `"))); err != nil {
						return err
					}
				}
				return c.refused("change "+tick(f), r)
			}
		}
		return c.say("Done: %s is now %s in %s:\n\n%s", tick(e.Old), tick(e.New), count(len(files), "file", "files"), block(strings.Join(files, "\n"), maxFiles))
	}
}

// filesWith are the files that have a text.
func (c *chat) filesWith(a searchArgs) ([]string, error) {
	if c.has("grep") {
		r, err := c.call("grep", a)
		if err != nil {
			return nil, err
		}
		if r.Failed {
			return nil, c.refused("search for "+tick(a.Pattern), r)
		}
		if nothing(r.Text) {
			return nil, nil
		}
		return lineList(withoutNote(r.Text)), nil
	}
	r, err := c.call("run_command", map[string]string{"command": grepCommand(a)})
	if err != nil {
		return nil, err
	}
	out, status := cutStatus(r.Text)
	if status == "" {
		return nil, c.refused("search for "+tick(a.Pattern), r)
	}
	return lineList(out), nil
}

// lineList are the paths of a list, one a line.
func lineList(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimPrefix(strings.TrimSpace(line), "./"); line != "" {
			list = append(list, line)
		}
	}
	return list
}
