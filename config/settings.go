package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Settings are the values in force: the file's, and defaults for the rest.
type Settings struct {
	Agent   string // who runs a new session's turns
	Model   string // of the built-in agent; "" lets it choose
	Mode    string // "ask", "edits" or "plan"
	Profile string // "coding" or "sysadmin"
	Queue   Queue
	Asks    Asks
	Limits  Limits
	Stop    Stop
	Log     Log
}

// Queue bounds a session's waiting prompts.
type Queue struct{ Max int }

// Asks says how long a question waits when nobody is attached who may answer.
type Asks struct{ Expiry time.Duration }

// Limits bound the daemon.
type Limits struct{ Connections int }

// Stop says how long a daemon that is told to stop waits for running turns.
type Stop struct{ Drain time.Duration }

// Log is what the daemon writes to its log.
type Log struct{ Level string }

// Defaults are the settings of an empty file.
func Defaults() Settings {
	return Settings{
		Agent:   "gladhand",
		Mode:    "ask",
		Profile: "coding",
		Queue:   Queue{Max: 16},
		Asks:    Asks{Expiry: 30 * time.Minute},
		Limits:  Limits{Connections: 512},
		Stop:    Stop{Drain: 5 * time.Second},
		Log:     Log{Level: "info"},
	}
}

// setting is one line of the table.
type setting struct {
	prop  string
	doc   string
	value func(*Settings) value
}

// table lists every setting, in the order in which people see them.
var table = []setting{
	{"agent", "the agent of a new session: gladhand, or a guest's name", func(s *Settings) value { return text{&s.Agent, 1} }},
	{"model", "the model of the built-in agent, such as offline; empty: the best one that is ready", func(s *Settings) value { return text{&s.Model, 0} }},
	{"mode", "what a new session may do without asking: ask, edits or plan", func(s *Settings) value { return word{&s.Mode, []string{"ask", "edits", "plan"}} }},
	{"profile", "how strict approvals are: coding or sysadmin", func(s *Settings) value { return word{&s.Profile, []string{"coding", "sysadmin"}} }},
	{"queue.max", "how many prompts may wait in a session", func(s *Settings) value { return number{&s.Queue.Max, 1, 256} }},
	{"asks.expiry", "how long a question waits when nobody is there to answer; then it is denied", func(s *Settings) value { return duration{&s.Asks.Expiry, time.Second, 7 * 24 * time.Hour} }},
	{"limits.connections", "how many local connections the daemon serves at once", func(s *Settings) value { return number{&s.Limits.Connections, 1, 16384} }},
	{"stop.drain", "how long a daemon that is told to stop waits for running turns", func(s *Settings) value { return duration{&s.Stop.Drain, 0, time.Hour} }},
	{"log.level", "what the daemon logs: debug, info, warn or error", func(s *Settings) value { return word{&s.Log.Level, []string{"debug", "info", "warn", "error"}} }},
}

// value is one setting within a Settings. set takes a JSON literal; its error
// says what would be right, to follow "NAME must be".
type value interface {
	set(raw []byte) error
	json() json.RawMessage
}

type mustBe string

func (m mustBe) Error() string { return string(m) }

type text struct {
	p   *string
	min int // bytes
}

func (v text) set(raw []byte) error {
	var s *string
	want := mustBe("a string of at most 200 characters")
	if json.Unmarshal(raw, &s) != nil || s == nil || len(*s) > 200 {
		return want
	}
	if len(*s) < v.min {
		return mustBe("a string that is not empty")
	}
	if strings.ContainsFunc(*s, unicode.IsControl) {
		return mustBe("a string without control characters")
	}
	*v.p = *s
	return nil
}

func (v text) json() json.RawMessage { return quote(*v.p) }

type word struct {
	p  *string
	of []string
}

func (v word) set(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		for _, w := range v.of {
			if s == w {
				*v.p = s
				return nil
			}
		}
	}
	return mustBe(`one of "` + strings.Join(v.of, `", "`) + `"`)
}

func (v word) json() json.RawMessage { return quote(*v.p) }

type number struct {
	p        *int
	min, max int
}

func (v number) set(raw []byte) error {
	var n *int
	if json.Unmarshal(raw, &n) != nil || n == nil || *n < v.min || *n > v.max {
		return mustBe(fmt.Sprintf("a whole number from %d to %d", v.min, v.max))
	}
	*v.p = *n
	return nil
}

func (v number) json() json.RawMessage { return fmt.Appendf(nil, "%d", *v.p) }

type duration struct {
	p        *time.Duration
	min, max time.Duration
}

func (v duration) set(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if d, err := time.ParseDuration(s); err == nil && d >= v.min && d <= v.max {
			*v.p = d
			return nil
		}
	}
	return mustBe(fmt.Sprintf(`a time from %s to %s, such as "90s", "30m" or "2h"`, short(v.min), short(v.max)))
}

func (v duration) json() json.RawMessage { return quote(short(*v.p)) }

// short is 30m where Duration says 30m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // cannot fail for a string
	return b
}

func find(prop string) *setting {
	for i := range table {
		if table[i].prop == prop {
			return &table[i]
		}
	}
	return nil
}

// isGroup reports whether settings exist below prop.
func isGroup(prop string) bool {
	for _, s := range table {
		if strings.HasPrefix(s.prop, prop+".") {
			return true
		}
	}
	return false
}

// hint says what an unknown name may have meant, as the end of a sentence.
func hint(prop string) string {
	if isGroup(prop) {
		var in []string
		for _, s := range table {
			if strings.HasPrefix(s.prop, prop+".") {
				in = append(in, s.prop)
			}
		}
		return "it is a group; name one of " + strings.Join(in, ", ")
	}
	best, far := "", len(prop)/3+2
	for _, s := range table {
		last := s.prop[strings.LastIndexByte(s.prop, '.')+1:]
		for _, name := range []string{s.prop, last} {
			if d := distance(strings.ToLower(prop), name); d < far {
				best, far = s.prop, d
			}
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "see `gladhand config list`"
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
