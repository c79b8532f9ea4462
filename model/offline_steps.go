package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// isStop reports whether a prompt only wants an end to what is going on.
func isStop(text string) bool {
	switch strings.ToLower(strings.Trim(tidy(text), " .!")) {
	case "stop", "stop it", "stop that", "never mind", "nevermind", "cancel", "cancel that", "forget it", "enough":
		return true
	}
	return false
}

// parseClause makes a step of one clause, or nil. A quiet read only takes a file
// in, for the question that follows.
func parseClause(clause string, quiet bool) step {
	if _, _, ok := planPrefix(clause); ok {
		return parsePlan(clause)
	}
	if isStop(clause) {
		return stopStep(clause)
	}
	if cmd := unquote(clause); cmd != clause && strings.HasPrefix(clause, "`") {
		return runStep(cmd)
	}
	if cmd, ok := strings.CutPrefix(clause, "$ "); ok {
		return commandStep(cmd)
	}
	word, rest := cutWord(clause)
	lower := strings.ToLower(strings.Trim(word, ",.:;!?"))
	_, isVerb := verbs()[lower]
	if !isVerb && slices.Contains(programs, lower) && !(lower == "go" && slices.Contains([]string{"", "on", "ahead"}, strings.ToLower(rest))) || strings.HasPrefix(word, "./") {
		return commandStep(clause)
	}
	if s := aboutMe(strings.ToLower(clause)); s != nil {
		return s
	}
	verb := verbOf(clause)
	s := parseVerb(verb, lower, clause, rest, quiet)
	if s == nil && fileLike(clause) && !strings.Contains(clause, " ") {
		return readStep(clause, readArgs{}, quiet, "")
	}
	if !isVerb && s != nil && verb != "" && !slices.Contains(harmless, verb) {
		return both(says("I take “%s” for “%s”.", word, meant(lower)), s)
	}
	return s
}

// both is one step after the other.
func both(a, b step) step {
	return func(c *chat) error {
		if err := a(c); err != nil {
			return err
		}
		return b(c)
	}
}

// parseVerb makes a step of a clause that begins with a verb of that meaning, or
// nil.
func parseVerb(verb, word, clause, rest string, quiet bool) step {
	if word != verb && verb != "" && verbs()[word] == "" { // a slip
		word = meant(word)
	}
	switch verb {
	case "read":
		return parseRead(rest, quiet)
	case "list":
		return parseList(clause, rest)
	case "run", "test", "build":
		return parseRun(verb, clause, rest)
	case "replace", "rename":
		return parseReplace(rest, verb == "rename")
	case "create", "append":
		return parseWrite(verb, word, clause, rest)
	case "delete", "move", "copy":
		return parseFileCommand(verb, rest)
	case "search":
		return parseSearch(word, clause, rest)
	case "start":
		return parseStart(rest)
	case "kill":
		return parseKill(clause, rest)
	case "check":
		return parseCheck(rest)
	case "elicit":
		return parseQuestion(clause)
	case "say":
		return says("%s", unquote(strings.TrimLeft(rest, ": ")))
	case "count":
		return parseCount(rest)
	case "wait":
		return parseWait(rest)
	case "help":
		return help
	case "greet":
		return says("%s", greeting)
	case "thanks":
		return says("You are welcome.")
	case "ask":
		return ask(clause)
	}
	return nil
}

// says is the step that says something.
func says(format string, args ...any) step {
	return func(c *chat) error { return c.say(format, args...) }
}

// say says one paragraph, unless it was said in an earlier reply.
func (c *chat) say(format string, args ...any) error {
	if c.past() {
		return nil
	}
	text := fmt.Sprintf(format, args...)
	if text == "" {
		return nil
	}
	if c.said {
		text = "\n\n" + text
	}
	c.said = true
	return c.words(text)
}

var articles = []string{"me", "us", "the", "a", "an", "this", "that", "my", "our", "all", "file", "files", "contents", "content", "text", "of", "in", "from", "at", "to", "into", "inside", "on", "up", "out", "for"}

// readSeen is the step that reads "it": the file that was found, read or written
// last.
func readSeen(quiet bool) step {
	return func(c *chat) error {
		if c.seen == "" {
			return c.say("Tell me which file, for instance “read go.mod”.")
		}
		return readStep(c.seen, readArgs{}, quiet, "")(c)
	}
}

type readArgs struct {
	Path  string `json:"path"`
	Line  int    `json:"line,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

func parseRead(rest string, quiet bool) step {
	plain := strings.TrimRight(strings.ToLower(skip(rest, "me", "us", "all", "the")), " ?!.")
	switch plain {
	case "files", "directory", "folder", "workspace", "what is here", "files here":
		return listStep("")
	case "status", "git status":
		return runStep("git status")
	case "changes", "diff", "git diff":
		return runStep("git diff")
	case "log", "history", "commits", "git log":
		return runStep("git log --oneline -10")
	case "", "it", "it again", "that", "this", "file", "that file", "this file":
		return readSeen(quiet)
	}
	if id, ok := outputOf(plain); ok {
		return outputStep(id, 0)
	}
	if word, _ := cutWord(plain); slices.Contains(programs, word) && !fileLike(word) {
		return runStep(skip(rest, "me", "us", "the"))
	}
	if word, more := cutWord(rest); more == "" && unquote(rest) != rest || more == "" && fileLike(word) {
		return readStep(word, readArgs{}, quiet, "")
	}
	file, others, found := fileIn(rest)
	if !found {
		others = skip(rest, articles...)
		if file, others = cutWord(others); others != "" || file == "" {
			return nil
		}
	}
	if second, left, more := fileIn(strings.ReplaceAll(others, ",", " ")); more { // read a.go and b.go
		next := parseRead(strings.TrimSpace(second+" "+strings.ReplaceAll(left, "and", "")), quiet)
		if next == nil {
			return nil
		}
		return both(readStep(file, readArgs{}, quiet, ""), next)
	}
	args, about := lineRange(others)
	about = skip(about, articles...)
	if args.Line > 0 {
		about = ""
	}
	return readStep(file, args, quiet || about != "", about)
}

// lineRange finds "lines 3-7", "line 5", "first 10 lines".
func lineRange(s string) (a readArgs, rest string) {
	lower := strings.ToLower(s)
	i := strings.Index(lower, "line")
	if i < 0 {
		return a, s
	}
	behind := strings.NewReplacer("-", " ", "–", " ", " to ", " ").Replace(strings.TrimLeft(lower[i+4:], "s"))
	if first, ok := number(behind); ok {
		a.Line, a.Limit = first, 1
		if words := strings.Fields(behind); len(words) > 1 {
			if last, ok := number(strings.Join(words[1:], " ")); ok && last >= first {
				a.Limit = last - first + 1
			}
		}
		return a, ""
	}
	if strings.Contains(lower[:i], "first") {
		n, ok := number(lower[:i])
		if !ok {
			n = 1
		}
		return readArgs{Line: 1, Limit: n}, ""
	}
	return a, s
}

func parseList(clause, rest string) step {
	if strings.HasPrefix(clause, "ls ") && strings.HasPrefix(rest, "-") {
		return commandStep(clause)
	}
	dir := skip(rest, articles...)
	dir = skip(dir, "everything", "here", "directory", "folder", "workspace", "entries")
	dir = skip(dir, articles...)
	dir = skip(dir, "directory", "folder", "here")
	dir = unquote(dir)
	if strings.Contains(dir, " ") {
		word, more := cutWord(dir)
		if dir = word; skip(more, "directory", "folder") != "" {
			return nil
		}
	}
	return listStep(dir)
}

func parseRun(verb, clause, rest string) step {
	if verb != "run" {
		if rest == "" || strings.HasPrefix(skip(rest, "the", "this", "it"), "project") || skip(rest, "the", "this", "it", "code", "everything") == "" {
			return projectStep(verb)
		}
		return nil
	}
	for _, show := range []string{" and show me", " and show", " and print"} {
		if before, what, ok := cutOutside(rest, show, true); ok {
			switch strings.ToLower(skip(what, "me", "the", "its")) {
			case "output", "result", "results":
				rest = before
			}
		}
	}
	switch strings.ToLower(skip(rest, "all", "the", "my", "our", "unit")) {
	case "test", "tests", "test suite":
		return projectStep("test")
	case "build":
		return projectStep("build")
	case "", "it", "that", "this", "them", "everything":
		return says("Tell me which command, for instance “run go version”.")
	}
	if c := skip(rest, "the command", "command", "this command", "this", "a command", "the"); c != "" && unquote(c) != c {
		rest = c
	} else if skip(rest, "the command", "command", "this command") != "" {
		rest = skip(rest, "the command", "command", "this command")
	}
	return commandStep(rest)
}

func parseReplace(rest string, rename bool) step {
	body, file, found := cutOutside(rest, " in ", true)
	if !found {
		body, file, found = cutOutside(rest, " inside ", true)
	}
	if body, where, ok := everywhere(rest); ok {
		if old, text, ok := cutEdit(body); ok {
			return replaceAllStep(where, editArgs{Old: old, New: text, All: true})
		}
	}
	if !found {
		if from, to, ok := cutOutside(rest, " to ", false); ok && rename && fileLike(from) && fileLike(to) {
			return runStep("mv " + pathQuote(from) + " " + pathQuote(to))
		}
		return says("Tell me in which file, for instance “replace 8080 with 9090 in config.yaml”.")
	}
	e := editArgs{All: rename}
	for _, all := range []string{" everywhere", " all over"} {
		for _, s := range []*string{&body, &file} {
			if rest, ok := strings.CutSuffix(*s, all); ok {
				*s, e.All = rest, true
			}
		}
	}
	for _, all := range []string{"all occurrences of", "every occurrence of", "all of", "all", "every", "each"} {
		if rest := skip(body, all); rest != body {
			body, e.All = rest, true
		}
	}
	file = unquote(skip(file, "the", "file"))
	if old, text, ok := cutEdit(body); ok && file != "" && !strings.Contains(file, " ") {
		e.Old, e.New = old, text
		return replaceStep(file, e)
	}
	return nil
}

// cutEdit cuts "old with new".
func cutEdit(body string) (old, text string, ok bool) {
	body = skip(body, "the word", "the text", "the string", "the line", "the name", "the variable", "the function")
	for _, by := range []string{" with ", " by ", " to ", " into ", " -> ", " → "} {
		if old, text, ok := cutOutside(body, by, false); ok && old != "" {
			return unquote(old), unquote(text), true
		}
	}
	return "", "", false
}

func parseCount(rest string) step {
	pause := time.Duration(0)
	if strings.Contains(strings.ToLower(rest), "slow") {
		pause = slowly
	}
	from, to := 1, 10
	if a, b, ok := cutOutside(rest, "to ", false); ok {
		if n, ok := number(a); ok && strings.Contains(a, "from") {
			from = n
		}
		rest = b
	}
	if n, ok := number(rest); ok {
		to = n
	}
	if to < from || to-from > 100_000 {
		return says("I count upwards, and at most a hundred thousand numbers at once.")
	}
	return func(c *chat) error {
		if c.past() {
			return nil
		}
		if err := c.say("%d", from); err != nil {
			return err
		}
		for n := from + 1; n <= to; n++ {
			if err := c.sleep(max(pause, c.pace)); err != nil {
				return err
			}
			if err := c.send(Chunk{Text: fmt.Sprintf(" %d", n)}); err != nil {
				return err
			}
		}
		return nil
	}
}

func parseWait(rest string) step {
	n, ok := number(rest)
	if id, known := jobOf(skip(rest, "for", "until")); known && !ok {
		return outputStep(id, waitFor)
	}
	unit := time.Second
	if strings.Contains(rest, "min") {
		unit = time.Minute
	}
	if !ok || time.Duration(n)*unit > time.Hour {
		return says("Tell me how long, at most an hour: “wait 5 seconds”.")
	}
	d := time.Duration(n) * unit
	return func(c *chat) error {
		if c.past() {
			return nil
		}
		if err := c.say("Waiting %s ", spell(n, unit)); err != nil {
			return err
		}
		for left := d; left > 0; left -= time.Second {
			if err := c.sleep(min(left, time.Second)); err != nil {
				return err
			}
			if err := c.send(Chunk{Text: "."}); err != nil {
				return err
			}
		}
		return c.words(" done.")
	}
}

func spell(n int, unit time.Duration) string {
	if unit == time.Minute {
		return count(n, "minute", "minutes")
	}
	return count(n, "second", "seconds")
}
