package model

import (
	"slices"
	"strings"
	"sync"
)

// verbs are the words that begin a step, each with what it means. Made when it is
// first needed: most runs of the program never do.
var verbs = sync.OnceValue(func() map[string]string {
	of := map[string]string{}
	for meaning, words := range map[string]string{
		"read":    "read show open display print view cat",
		"list":    "list ls dir",
		"run":     "run execute exec",
		"start":   "start launch",
		"kill":    "kill terminate end stop",
		"check":   "check",
		"replace": "replace change substitute swap",
		"rename":  "rename",
		"create":  "create make touch write",
		"append":  "append add",
		"delete":  "delete remove",
		"move":    "move",
		"copy":    "copy",
		"search":  "search grep find look locate",
		"say":     "say echo repeat",
		"count":   "count",
		"wait":    "wait sleep pause",
		"test":    "test",
		"build":   "build",
		"plan":    "plan",
		"elicit":  "ask",
		"help":    "help",
		"greet":   "hello hi hey",
		"thanks":  "thanks thank",
		"ask":     "tell what what's whats which how who where does is are explain summarize summarise describe",
	} {
		for _, w := range strings.Fields(words) {
			of[w] = meaning
		}
	}
	return of
})

// harmless are the meanings that change nothing, whatever follows.
var harmless = []string{"read", "list", "check", "search", "say", "count", "wait", "plan", "elicit", "help", "greet", "thanks", "ask"}

// programs are commands that people type as they are.
var programs = []string{
	"git", "go", "gofmt", "npm", "npx", "pnpm", "yarn", "node", "deno", "bun", "python", "python3", "pip", "pytest", "uv",
	"cargo", "rustc", "make", "cmake", "gcc", "docker", "kubectl", "java", "mvn", "gradle", "ruby", "bundle", "php",
	"pwd", "whoami", "date", "uname", "env", "df", "du", "ps", "wc", "head", "tail", "sort", "sed", "awk", "curl", "mkdir", "cp", "mv", "rm",
}

// realWords stand at the beginning of a sentence and are no slip.
var realWords = sync.OnceValue(func() []string {
	return strings.Fields("fine kind mind wind bind line lines mine last lost past rest list's well sell bell fell hell here there these those lean lead road real shot slow snow than that this them coin mount sweat watt waits looks finds reads shows lists says wants")
})

func isProgram(word string) bool {
	return slices.Contains(programs, strings.ToLower(word)) || strings.HasPrefix(word, "./")
}

// firstWord is the word that says what a clause wants.
func firstWord(clause string) string {
	first, _ := cutWord(tidy(clause[:min(len(clause), 200)]))
	return strings.Trim(strings.ToLower(first), ",.:;!?")
}

// verbOf is the meaning of a clause's first word, small slips forgiven; "" for one
// that begins no step.
func verbOf(clause string) string {
	first := firstWord(clause)
	if v, ok := verbs()[first]; ok {
		return v
	}
	if slices.Contains(programs, first) || strings.HasPrefix(first, "$") || strings.HasPrefix(first, "./") {
		return "run"
	}
	return verbs()[meant(first)]
}

// meant is the verb that a word is a slip of: one letter missing, added, wrong or
// swapped with its neighbour, in a word of four letters or more. It is "" when
// words of two meanings are as near. For a verb that changes something a wrong
// letter is no slip, nor is another ending: "test", "text" and "tests" are words.
func meant(word string) string {
	if len(word) < 4 || len(word) > 20 || slices.Contains(realWords(), word) {
		return ""
	}
	found := ""
	for verb, meaning := range verbs() {
		if len(verb) < 4 || distance(word, verb) != 1 {
			continue
		}
		if found != "" && verbs()[found] != meaning {
			return ""
		}
		if found == "" || verb < found {
			found = verb
		}
	}
	if found != "" && !slices.Contains(harmless, verbs()[found]) && !slipped(word, found) {
		return ""
	}
	return found
}

// slipped reports whether a word at a distance of 1 from a verb is no other word
// that people write on purpose.
func slipped(word, verb string) bool {
	switch {
	case word[0] != verb[0]:
		return false
	case len(word) == len(verb): // swapped, not wrong
		return sorted(word) == sorted(verb)
	}
	return len(word) < len(verb) || !strings.HasPrefix(word, verb)
}

func sorted(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}

// distance counts inserted, deleted, changed and swapped letters.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d > 3 || d < -3 {
		return max(d, -d) // far enough for everybody
	}
	two, one := make([]int, len(y)+1), make([]int, len(y)+1) // the rows above
	row := make([]int, len(y)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(y)]
}
