package model

import (
	"cmp"
	"slices"
	"strings"
)

func parseWrite(verb, word, clause, rest string) step {
	rest = strings.TrimLeft(rest, ": ")
	if word == "make" {
		if what := skip(rest, "me", "a", "an", "new", "empty"); !strings.HasPrefix(what, "file") && !strings.HasPrefix(what, "dir") && !strings.HasPrefix(what, "folder") {
			if first, _ := cutWord(what); !fileLike(first) && what == rest {
				if slices.Contains(pronouns, strings.ToLower(first)) || len(strings.Fields(what)) > 3 {
					return nil
				}
				return runStep(clause) // make test
			}
		}
	}
	what := skip(rest, "me", "a", "an", "the", "new", "empty")
	for _, d := range []string{"directory", "folder", "dir"} {
		if name := skip(what, d); name != what {
			name = unquote(skip(name, "called", "named"))
			return runStep("mkdir -p " + pathQuote(name))
		}
	}
	if text, file, ok := cutOutside(rest, " to the end of ", true); ok && verb == "append" {
		return appendStep(cleanName(file), lineOf(text))
	}
	for _, to := range []string{" to ", " into ", " in ", " at the end of "} {
		text, file, ok := cutOutside(rest, to, true)
		if file = cleanName(file); !ok || text == "" || word == "make" || word == "touch" || !fileLike(file) || strings.Contains(file, " ") || strings.Contains(text, ":\n") {
			continue
		}
		if slices.Contains([]string{"the output", "the result", "the results", "what was found"}, strings.ToLower(text)) {
			text = "it"
		}
		if first, more := cutWord(text); unquote(text) == text && slices.Contains(pronouns, strings.ToLower(first)) {
			return writeSeen(verb, first, more, file)
		}
		text = lineOf(text)
		if verb == "append" {
			return appendStep(file, text)
		}
		return writeStep(file, text)
	}
	if verb == "append" {
		return nil
	}
	name, text := cutWord(skip(what, "file", "called", "named"))
	name = strings.TrimRight(name, ":,")
	named := fileLike(name) || skip(what, "file") != what || strings.Contains(rest, " called ") || unquote(rest) != rest
	if name == "" || !named {
		return nil
	}
	body := skip(text, "with", "containing", "saying", "that says", "which says", "that contains", "the text", "the content", "the contents", "content", "contents")
	return writeStep(name, unquote(strings.TrimPrefix(body, "\n")))
}

// pronouns speak of something that no rule knows.
var pronouns = []string{"it", "them", "this", "that", "these", "those", "its", "their", "everything", "all", "both"}

// writeSeen is the step that writes "it", what was seen last; anything longer is
// not understood, and certainly not what is to be written.
func writeSeen(verb, first, more, file string) step {
	if more != "" || first == "its" || first == "their" {
		return nil
	}
	return func(c *chat) error {
		switch {
		case c.file == "":
			return c.drop("I have seen nothing yet that I could write to %s.", tick(file))
		case c.part:
			return c.drop("I saw only a part of %s, so I did not write it to %s. “copy A to B” copies a file.", c.file, tick(file))
		case verb == "append":
			return appendStep(file, c.text)(c)
		}
		return writeStep(file, c.text)(c)
	}
}

// lineOf is what to write for "the line x": x; for "a line" alone, these words.
func lineOf(text string) string {
	return cmp.Or(unquote(skip(text, "a line", "the line", "line", "the text")), text)
}

func cleanName(s string) string {
	return unquote(strings.TrimRight(skip(s, "the", "a", "new", "file", "called", "named"), ":,"))
}

func parseFileCommand(verb, rest string) step {
	rest = skip(rest, "the", "file", "directory", "folder")
	for _, p := range strings.Fields(rest) {
		if slices.Contains(pronouns, strings.ToLower(p)) {
			return says("Tell me which file, by its name.")
		}
	}
	if verb == "delete" {
		if unquote(rest) == "" || strings.Contains(unquote(rest), " ") && unquote(rest) == rest {
			return nil
		}
		return runStep("rm " + pathQuote(unquote(rest)))
	}
	from, to, ok := cutOutside(rest, " to ", false)
	if !ok || from == "" || to == "" || strings.ContainsAny(from+to, " ") {
		return nil
	}
	return runStep(map[string]string{"move": "mv ", "copy": "cp "}[verb] + pathQuote(unquote(from)) + " " + pathQuote(unquote(to)))
}

// pathQuote is a path as one word of a shell that is no option.
func pathQuote(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return shellQuote(path)
}

// shellQuote is s as one word of a shell.
func shellQuote(s string) string {
	plain := s != "" && !strings.HasPrefix(s, "~")
	for _, r := range s {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._/-+:@%", r))
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
