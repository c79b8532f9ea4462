package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gladhand"
)

// Settings are the values in force: the file's, and defaults for the rest. Its
// maps and slices are never changed; a change makes new ones.
type Settings struct {
	Agent   string // who runs a new session's turns
	Model   string // of the built-in agent; "" lets it choose
	Effort  string // how hard that model thinks, in its own words; "" leaves it to the model
	Mode    string // "ask", "edits" or "plan"
	Profile string // "coding" or "sysadmin"
	Steps   Steps
	Compact Compact
	Queue   Queue
	Asks    Asks
	Limits  Limits
	Stop    Stop
	Log     Log
	Network Network
	// Providers of models, by name; those known anyway need no entry.
	Providers map[string]Provider
	// MCP servers that every session of the built-in agent gets, by name.
	MCP map[string]MCPServer
}

// Steps bounds a turn: how often the model may be asked in it.
type Steps struct{ Max int }

// Compact says when the context kept for the model is reduced: once it takes At
// percent of the model's window.
type Compact struct{ At int }

// Network is how models and MCP servers are reached.
type Network struct {
	// Proxy is empty for what the environment says, "none", or an address, which
	// may have a password in it.
	Proxy gladhand.Secret
	// NoProxy lists hosts reached without the proxy, as NO_PROXY does.
	NoProxy string
	// CA is the path of a file with further certificates to trust, PEM.
	CA string
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
		Steps:   Steps{Max: 200},
		Compact: Compact{At: 85},
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
	{"effort", "how hard the model thinks, in its own words, such as low or high; empty: as it does by itself", func(s *Settings) value { return text{&s.Effort, 0} }},
	{"mode", "what a new session may do without asking: ask, edits or plan", func(s *Settings) value { return word{&s.Mode, []string{"ask", "edits", "plan"}} }},
	{"profile", "how strict approvals are: coding or sysadmin", func(s *Settings) value { return word{&s.Profile, []string{"coding", "sysadmin"}} }},
	{"steps.max", "how often a turn may ask the model; then it ends", func(s *Settings) value { return number{&s.Steps.Max, 1, 1000} }},
	{"compact.at", "the percentage of the model's window at which its context is reduced", func(s *Settings) value { return number{&s.Compact.At, 50, 95} }},
	{"queue.max", "how many prompts may wait in a session", func(s *Settings) value { return number{&s.Queue.Max, 1, 256} }},
	{"asks.expiry", "how long a question waits when nobody is there to answer; then it is denied", func(s *Settings) value { return duration{&s.Asks.Expiry, time.Second, 7 * 24 * time.Hour} }},
	{"limits.connections", "how many local connections the daemon serves at once", func(s *Settings) value { return number{&s.Limits.Connections, 1, 16384} }},
	{"stop.drain", "how long a daemon that is told to stop waits for running turns", func(s *Settings) value { return duration{&s.Stop.Drain, 0, time.Hour} }},
	{"log.level", "what the daemon logs: debug, info, warn or error", func(s *Settings) value { return word{&s.Log.Level, []string{"debug", "info", "warn", "error"}} }},
	{"network.proxy", "how models are reached: empty for the environment's HTTPS_PROXY, none, or an address", func(s *Settings) value { return proxy{&s.Network.Proxy} }},
	{"network.no_proxy", "hosts reached without that proxy, separated by commas", func(s *Settings) value { return text{&s.Network.NoProxy, 0} }},
	{"network.ca", "a file with further certificates to trust, PEM", func(s *Settings) value { return path{&s.Network.CA} }},
	{"providers", "providers of models: a name, and how to reach it; see models.md", func(s *Settings) value { return named[Provider]{&s.Providers, "provider", maxProviders, readProvider} }},
	{"mcp", "MCP servers that every session gets: a name, and how to start or reach it", func(s *Settings) value { return named[MCPServer]{&s.MCP, "server", maxServers, readServer} }},
}

// within finds the object setting that prop is a part of, as "providers.local.url"
// is of "providers".
func within(prop string) *setting {
	first, _, ok := strings.Cut(prop, ".")
	def := find(first)
	if !ok || def == nil {
		return nil
	}
	var s Settings
	switch def.value(&s).(type) {
	case named[Provider], named[MCPServer]:
		return def
	}
	return nil
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
	var names []string
	of := map[string]string{}
	for _, s := range table {
		last := s.prop[strings.LastIndexByte(s.prop, '.')+1:]
		names = append(names, s.prop, last)
		of[s.prop] = s.prop
		if of[last] == "" {
			of[last] = s.prop
		}
	}
	if best := nearest(strings.ToLower(prop), names); best != "" {
		return fmt.Sprintf("did you mean %q?", of[best])
	}
	return "see `gladhand config list`"
}

// nearest is the name that s was probably meant to be, or "".
func nearest(s string, names []string) string {
	best, far := "", len(s)/3+2
	for _, name := range names {
		if d := distance(s, name); d < far || d == far && best != "" && name < best {
			best, far = name, d
		}
	}
	return best
}

// list writes names in order, for people.
func list(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ", ")
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
