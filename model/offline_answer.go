package model

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

const greeting = "Hello! I am gladhand's offline model: a small set of rules, not a language model. Try “read go.mod”, “list files”, “run go version”, or “help”."

const whatIAm = `I am gladhand's offline model: a small set of rules inside the program. I am not a language model; I know only a handful of plain requests, but I carry them out with the real tools and ask before anything is changed or run.`

const examples = `Things you can say:

- “read go.mod and tell me the module name”, “show lines 10-20 of main.go”
- “list files”, “find files named *.go”, “where is main.go”, “search for TODO in src”
- “run go test ./...”, “git status”, “run the tests”
- “run ./server in the background”, “show the output of it”, “stop it”
- “replace 8080 with 9090 in config.yaml”, “rename foo to bar in all go files”
- “create notes.txt with hello”, “append another line to notes.txt”
- “plan and do: read go.mod; run go test ./...”
- “ask me for a name and write it to name.txt”
- several at once: “read README.md, then run git log --oneline”
- “count to 20 slowly”, “wait 5 seconds”, to see it stream and to cancel it`

const configure = `A real model takes my place as soon as one can be reached: with a provider's key in the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY), in the settings or in the system's keyring, or with an Ollama that runs on this machine. “gladhand models” shows what there is, and “gladhand config set model NAME” makes one the default.`

var help = says("%s\n\n%s\n\n%s", whatIAm, examples, configure)

// confess says that a request was not understood, and what would be.
func confess(text string) step {
	return says("I did not understand “%s”. I am gladhand's offline model: a small set of rules, not a language model.\n\n%s\n\n%s", begin(text), examples, configure)
}

// begin is as much of a text as one repeats.
func begin(text string) string {
	if r := []rune(text); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return text
}

func leftOut(clauses []string) step {
	return says("I did not understand “%s”, so I left it out; “help” says what I know.", begin(strings.Join(clauses, "”, “")))
}

// aboutMe answers what is about the model itself, or returns nil.
func aboutMe(clause string) step {
	has := func(words ...string) bool {
		for _, w := range words {
			if !strings.Contains(" "+clause+" ", w) {
				return false
			}
		}
		return true
	}
	switch {
	case has("what can you") || has("what do you know") || has("how do you work") || has("what should i"):
		return help
	case has("configure") && has("model") || has("api key") || has("real model") || has("set up", "model") || has("use", "model") && (has("how") || has("different") || has("another")):
		return says("%s", configure)
	case has("what are you") || has("who are you") || has("what is this") && !has(".") || has("are you", "model") || has("are you a") || has("which model") || has("what model"):
		return says("%s\n\n%s", whatIAm, configure)
	case strings.Trim(clause, "?!. ") == "go on" || strings.Trim(clause, "?!. ") == "continue" || strings.Trim(clause, "?!. ") == "go ahead":
		return says("There is nothing left to go on with. What shall I do?")
	}
	return nil
}

// wellKnown is where to look when a question names no file.
var wellKnown = []struct{ word, file string }{
	{"module", "go.mod"},
	{"go version", "go.mod"},
	{"package name", "package.json"},
	{"scripts", "package.json"},
	{"licence", "LICENSE"},
	{"license", "LICENSE"},
	{"crate", "Cargo.toml"},
	{"project", "README.md"},
	{"about", "README.md"},
	{"readme", "README.md"},
	{"ignored", ".gitignore"},
	{"targets", "Makefile"},
}

// ask is the step of a question: about the file it names, about what was read
// just before, or about a file where such things are written.
func ask(question string) step {
	lower := strings.ToLower(strings.Trim(question, "?!. "))
	for _, known := range []struct{ has, run string }{
		{"what time", "date"},
		{"what day", "date"},
		{"the date", "date"},
		{"who am i", "whoami"},
		{"what changed", "git status --short"},
		{"has changed", "git status --short"},
		{"which branch", "git branch --show-current"},
		{"what branch", "git branch --show-current"},
	} {
		if strings.Contains(lower, known.has) {
			return runStep(known.run)
		}
	}
	for _, here := range []string{"what files are", "which files are", "what files do", "what is here", "what's here", "what is in this", "what's in this", "where am i", "which directory", "what directory", "what is in the workspace"} {
		if strings.HasPrefix(lower, here) {
			return listStep("")
		}
	}
	if s := aboutJob(lower); s != nil {
		return s
	}
	if word, _ := cutWord(lower); word == "where" {
		if s := whereIs(question); s != nil {
			return s
		}
	}
	for _, in := range []string{"which files contain", "which files mention", "which files have", "which files use", "what files contain", "what files mention"} {
		if what, ok := cutFold(strings.Trim(question, "?!. "), in+" "); ok {
			return parseSearch("search", question, "files with "+what)
		}
	}
	if file, rest, ok := fileIn(question); ok {
		about := strings.TrimSpace(rest)
		for _, show := range []string{"what is in", "what's in", "whats in", "what does say", "tell me what is in", "tell me what's in"} {
			if skip(strings.ToLower(strings.Trim(about, "? ")), "the", "file") == show || strings.EqualFold(strings.Trim(about, "? "), show) {
				return readStep(file, readArgs{}, false, "")
			}
		}
		return readStep(file, readArgs{}, true, about)
	}
	return func(c *chat) error {
		if c.file == "" {
			for _, k := range wellKnown {
				if strings.Contains(lower, k.word) {
					name, err := c.take(k.file, readArgs{})
					if err != nil {
						return err
					}
					return c.say("%s", answer(question, name, c.text))
				}
			}
			return confess(question)(c)
		}
		if strings.HasPrefix(c.file, "the output") && mentions(lower, "pass", "passes", "passed", "work", "works", "worked", "fail", "fails", "failed", "ok", "result", "happens", "happened") {
			return nil // it was just said
		}
		return c.say("%s", answer(question, c.file, c.text))
	}
}

// aboutJob makes a step of a question about the command in the background, or
// returns nil.
func aboutJob(question string) step {
	for _, q := range []string{"is it still running", "is it running", "is it done", "is it finished", "is it ready", "what did it print", "what does it print", "what has it printed", "what is its output", "how is it going", "how is it doing", "how far is it"} {
		if strings.HasPrefix(question, q) {
			return outputStep("", 0)
		}
	}
	if rest, ok := cutFold(question, "what is "); ok {
		if id, ok := outputOf(rest); ok {
			return outputStep(id, 0)
		}
	}
	return nil
}

// answer looks a question up in a text, word by word.
func answer(question, name, text string) string {
	if !strings.HasPrefix(name, "the ") {
		name = tick(name)
	}
	lower := strings.ToLower(question)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	n := lineCount(text)
	switch {
	case n == 0:
		return fmt.Sprintf("%s is empty.", capital(name))
	case strings.Contains(lower, "how many lines") || strings.Contains(lower, "number of lines"):
		return fmt.Sprintf("%s has %s.", name, count(n, "line", "lines"))
	case strings.Contains(lower, "how many words"):
		return fmt.Sprintf("%s has %s.", name, count(len(strings.Fields(text)), "word", "words"))
	case strings.Contains(lower, "how many entries") || strings.Contains(lower, "how many files"):
		return fmt.Sprintf("%s has %s.", name, count(n, "entry", "entries"))
	case strings.Contains(lower, "last line"):
		return fmt.Sprintf("The last line of %s is: %s", name, tick(lines[n-1]))
	case strings.Contains(lower, "first line"):
		return fmt.Sprintf("The first line of %s is: %s", name, tick(lines[0]))
	case mentions(lower, "about", "summarize", "summarise", "summary", "explain", "describe"):
		return fmt.Sprintf("I cannot sum up as a language model would. %s begins so:\n\n%s", capital(name), block(opening(lines), 8))
	}
	words := keywords(question)
	if len(words) == 0 {
		return fmt.Sprintf("%s has %s:\n\n%s", name, count(n, "line", "lines"), block(text, shown))
	}
	best, at := 0, -1
	for i, l := range lines {
		if score := matchScore(l, words); score > best {
			best, at = score, i
		}
	}
	yesNo := strings.HasPrefix(lower, "does ") || strings.HasPrefix(lower, "is ") || strings.HasPrefix(lower, "are ")
	if at < 0 && yesNo {
		return fmt.Sprintf("No line of %s has %s in it.", name, tick(strings.Join(words, " ")))
	}
	if at < 0 {
		return fmt.Sprintf("I looked for “%s” in %s and found no line about it. I can only look words up; a language model would understand the question.", strings.Join(words, " "), name)
	}
	if yesNo {
		return fmt.Sprintf("Line %d of %s says: %s", at+1, name, tick(strings.TrimSpace(lines[at])))
	}
	if value := valueOf(lines[at], words); value != "" {
		return fmt.Sprintf("The %s is %s (line %d of %s).", strings.Join(words, " "), tick(value), at+1, name)
	}
	return fmt.Sprintf("Line %d of %s says: %s", at+1, name, tick(strings.TrimSpace(lines[at])))
}

func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }), func(w string) bool { return slices.Contains(words, w) })
}

// opening is the first heading or text of a file.
func opening(lines []string) string {
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			return strings.Join(lines[i:min(len(lines), i+8)], "\n")
		}
	}
	return ""
}

var stopWords = sync.OnceValue(func() []string {
	return strings.Fields("a an and are at be by can do does did file find for from give has have he how i in is it its line me my named of on or our please read say says show tell that the their there this to us was we what what's whats where which who whole why will with write written you your value name's called exactly there contain contains mention mentions use uses used out if")
})

// keywords are the words of a question that are worth looking up.
func keywords(question string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(question, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./'", r)
	}) {
		w = strings.Trim(w, ".-/'")
		if w != "" && !slices.Contains(stopWords(), strings.ToLower(w)) && !strings.Contains(w, "/") {
			words = append(words, w)
		}
	}
	return words[:min(len(words), 12)]
}

// matchScore is how well a line fits the words: whole words count more, and a
// line that begins with one more still.
func matchScore(line string, words []string) int {
	parts := strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	score := 0
	for i, w := range words {
		w = strings.ToLower(w)
		at := slices.IndexFunc(parts, func(p string) bool { return p == w || p == w+"s" || p+"s" == w })
		switch {
		case at == 0:
			score += 12
		case at > 0:
			score += 8
		case len(w) > 4 && nearAny(w, parts):
			score += 5
		default:
			continue
		}
		if i == 0 {
			score++ // the first word is what it is about
		}
	}
	return score
}

func nearAny(word string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool {
		return len(p) > 4 && len(p) <= 40 && len(word) <= 40 && (strings.HasPrefix(p, word) || distance(p, word) <= 1)
	})
}

// valueOf takes the value out of a line like "key: value", "key = value" or, for
// a key that was asked for, "key value".
func valueOf(line string, words []string) string {
	line = strings.TrimRight(strings.TrimSpace(line), ",;{")
	for _, sep := range []string{":=", "=", ": "} {
		if key, value, ok := strings.Cut(line, sep); ok && matchScore(key, words) > 0 && len(strings.Fields(key)) <= 4 {
			return unquote(strings.TrimSpace(value))
		}
	}
	key, value, ok := strings.Cut(line, " ")
	if ok && matchScore(key, words) >= 12 && !strings.Contains(strings.TrimSpace(value), " ") {
		return unquote(strings.TrimSpace(value))
	}
	return ""
}

// capital is a name as it begins a sentence.
func capital(s string) string {
	if strings.HasPrefix(s, "the ") {
		return "T" + s[1:]
	}
	return s
}
