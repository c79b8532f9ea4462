package gladhand

// Effect is the sort of thing an action does.
type Effect string

// The effects, from the mildest.
const (
	EffectNone Effect = "none" // changes nothing outside the session
	EffectRead Effect = "read"
	EffectEdit Effect = "edit" // creates or changes files
	EffectRun  Effect = "run"  // runs a command, which may do anything
)

// Action is what a tool call is about to do, as far as allowing it goes. A tool
// says what it will do; package policy decides whether it may.
type Action struct {
	Tool   string
	Effect Effect
	// Paths are the files it reads or changes: absolute, with symbolic links
	// resolved, so that what is decided on is what will be touched.
	Paths []string
	// Command is the exact command line of a run, Dir where it runs (absolute).
	Command string
	Dir     string
	// Server is whose tool it is when a server of another maker runs it: its name
	// and a fingerprint of how it is started or reached, so that two servers of one
	// name are two. Empty for our own tools.
	Server string
	// Confinement says what holds a run back, in words for people.
	Confinement string
}
