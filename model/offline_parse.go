package model

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// step is one thing to do. It may call tools, and is run again from its start
// for each reply.
type step func(*chat) error

// maxPrompt bounds what is parsed.
const maxPrompt = 64 << 10

// straighten makes of typographic marks those of a keyboard.
var straighten = strings.NewReplacer("“", `"`, "”", `"`, "‘", "'", "’", "'", "\u00a0", " ", "\r\n", "\n")

// parse makes steps of a prompt. What it does not understand becomes a step that
// says so.
func parse(text string) []step {
	if len(text) > maxPrompt {
		return []step{says("That is a very long prompt; I read at most %d KiB. Say it in fewer words.", maxPrompt>>10)}
	}
	clauses := split(tidy(text))
	if len(clauses) == 0 {
		return []step{help}
	}
	var steps []step
	var unclear []string
	for i, s := range stepsOf(clauses) {
		if s != nil {
			steps = append(steps, s)
		} else {
			unclear = append(unclear, clauses[i])
		}
	}
	switch {
	case len(steps) == 0:
		return []step{confess(strings.Join(clauses, ", "))}
	case len(unclear) > 0:
		steps = append(steps, leftOut(unclear))
	}
	return steps
}

// stepsOf makes a step of each clause, nil where one is not understood.
func stepsOf(clauses []string) []step {
	steps := make([]step, len(clauses))
	asked := "" // what a clause before this one asks people for
	for i, clause := range clauses {
		quiet := i+1 < len(clauses) && verbOf(clauses[i+1]) == "ask"
		if asked != "" {
			if before, after, ok := cutAnswer(clause, asked); ok {
				steps[i] = withAnswer(before, after, quiet)
				continue
			}
		}
		steps[i] = parseClause(clause, quiet)
		if q, ok := questionIn(clause); ok && steps[i] != nil {
			asked = q.noun
		}
	}
	return steps
}

// tidy straightens quotes and blanks, and takes politeness off both ends.
func tidy(text string) string {
	text = strings.TrimSpace(straighten.Replace(text))
	for {
		before := text
		for _, p := range []string{"please", "pls", "can you", "could you", "would you", "will you", "i want you to", "i'd like you to", "i would like you to", "now", "ok", "okay", "then", "and", "so", "also", "let's", "just", "first"} {
			if rest, ok := cutFold(text, p); ok && (rest == "" || strings.ContainsAny(rest[:1], " ,:")) && strings.TrimLeft(rest, " ,:") != "" {
				text = strings.TrimLeft(rest, " ,:")
			}
		}
		for _, p := range []string{"please", "pls", "for me", "thanks", "thank you"} {
			if len(text) > len(p) && strings.EqualFold(text[len(text)-len(p):], p) && strings.ContainsAny(text[len(text)-len(p)-1:len(text)-len(p)], " ,") {
				text = strings.TrimRight(text[:len(text)-len(p)], " ,")
			}
		}
		if text == before {
			return text
		}
	}
}

// cutFold is strings.CutPrefix without regard to case.
func cutFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// split cuts a prompt into clauses: at line ends and "then", and where "and", a
// comma, a semicolon or a full stop is followed by a word that begins a step. A
// command keeps its own "and" and semicolons; text in quotes is never cut.
func split(text string) []string {
	var out []string
	start := 0
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		if i == start {
			if _, _, ok := planPrefix(text[start:]); ok {
				break // all that follows is the plan's
			}
		}
		switch {
		case quote != 0:
			if text[i] == quote {
				quote = 0
			}
			continue
		case opensQuote(text, i):
			quote = text[i]
			continue
		}
		n, sure := separator(text[i:])
		if n == 0 {
			continue
		}
		verb, next := verbOf(text[start:i]), verbOf(text[i+n:])
		if text[i] == '\n' && (verb == "create" || verb == "append") && strings.HasSuffix(strings.TrimRight(text[start:i], " "), ":") {
			break // the text of a file follows, to the end
		}
		if !sure && (next == "" || verb == "run" && next != "ask" && !endsInBackground(text[start:i]) || verb == "elicit" && text[i] == ',' && strings.Contains(text[start:i], ":")) {
			continue
		}
		if strings.TrimSpace(text[start:i]) != "" {
			out = append(out, tidyClause(text[start:i]))
		}
		start = i + n
		i = start - 1
	}
	if rest := tidyClause(text[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

func tidyClause(s string) string {
	s = strings.Trim(tidy(s), " ,;\n")
	for _, keep := range []string{"...", " .", "/.", ".."} { // paths
		if strings.HasSuffix(s, keep) {
			return s
		}
	}
	return strings.TrimRight(s, ".!")
}

// opensQuote reports whether a quoted text begins at i: a quote at the start of
// a word that is closed somewhere.
func opensQuote(s string, i int) bool {
	c := s[i]
	if c != '"' && c != '`' && c != '\'' || strings.IndexByte(s[i+1:], c) < 0 {
		return false
	}
	return c != '\'' || i == 0 || strings.ContainsRune(" (=:,\n", rune(s[i-1]))
}

// separator is how long the separator at the start of s is, and whether it
// separates whatever follows.
func separator(s string) (n int, sure bool) {
	for _, sep := range []string{", and then ", " and then ", "; then ", ", then ", ". then ", ". Then ", " then ", "\n"} {
		if strings.HasPrefix(s, sep) {
			return len(sep), true
		}
	}
	for _, sep := range []string{", and ", " and ", "; ", ". ", ", ", "? "} {
		if strings.HasPrefix(s, sep) {
			return len(sep), false
		}
	}
	return 0, false
}

// cutWord takes the first word, or quoted text, off s.
func cutWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \n")
	if s != "" && opensQuote(s, 0) {
		end := strings.IndexByte(s[1:], s[0]) + 1
		return s[1:end], strings.TrimLeft(s[end+1:], " ")
	}
	i := strings.IndexAny(s, " \n")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " ")
}

// skip takes the first of the phrases that s begins with off it, again and again.
func skip(s string, phrases ...string) string {
again:
	for _, p := range phrases {
		if rest, ok := cutFold(s, p); ok && (rest == "" || strings.ContainsAny(rest[:1], " :")) {
			s = strings.TrimLeft(rest, " :")
			goto again
		}
	}
	return s
}

// unquote takes quotes around the whole of s off.
func unquote(s string) string {
	if len(s) >= 2 && strings.ContainsAny(s[:1], "\"'`") && strings.IndexByte(s[1:], s[0]) == len(s)-2 {
		return s[1 : len(s)-1]
	}
	return s
}

// cutOutside cuts s at the first (or last) sep that is not in quotes.
func cutOutside(s, sep string, last bool) (before, after string, found bool) {
	at, quote := -1, byte(0)
	for i := 0; i < len(s); i++ {
		switch {
		case quote != 0:
			if s[i] == quote {
				quote = 0
			}
		case opensQuote(s, i):
			quote = s[i]
		case len(s)-i >= len(sep) && strings.EqualFold(s[i:i+len(sep)], sep):
			at = i
		}
		if at >= 0 && !last {
			break
		}
	}
	if at < 0 {
		return s, "", false
	}
	return strings.TrimSpace(s[:at]), strings.TrimSpace(s[at+len(sep):]), true
}

// fileLike reports whether a word looks like a file's name.
func fileLike(word string) bool {
	word = strings.TrimRight(word, ",;:?!")
	switch strings.ToLower(word) {
	case "makefile", "dockerfile", "license", "readme", "gemfile", "justfile":
		return true
	}
	if strings.Contains(word, "/") || strings.HasPrefix(word, ".") && len(word) > 1 {
		return true
	}
	i := strings.LastIndexByte(word, '.')
	return i > 0 && i < len(word)-1 && unicode.IsLetter(rune(word[i+1])) && !strings.ContainsAny(word, "()<>|&=")
}

// fileIn finds a word in s that looks like a file, and s without it.
func fileIn(s string) (file, rest string, found bool) {
	words := strings.Fields(s)
	for i, w := range words {
		w = strings.Trim(w, "`\"',;:?!")
		if fileLike(w) {
			return strings.TrimRight(w, "."), strings.Join(slices.Delete(words, i, i+1), " "), true
		}
	}
	return "", s, false
}

// number finds the first whole number in s.
func number(s string) (int, bool) {
	words := map[string]int{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "twenty": 20, "hundred": 100, "a": 1, "an": 1}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		digits := strings.TrimRightFunc(w, unicode.IsLetter)
		if n, err := strconv.Atoi(digits); err == nil {
			return n, true
		}
		if n, ok := words[w]; ok {
			return n, true
		}
	}
	return 0, false
}
