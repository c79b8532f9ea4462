package proc

// PeerID is what the system says about the process at the other end of a
// connection: never what it says of itself.
type PeerID struct {
	UID int // −1 on Windows
	// PID is 0 when it cannot be known: the process ended, or lives in a pid
	// namespace that we cannot see into.
	PID int
	// StartTime tells two bearers of one pid apart: clock ticks since boot on
	// Linux, microseconds since 1970 on macOS, FILETIME on Windows; 0 unknown.
	StartTime uint64
	Exe       string // path of its program, for messages; "" unknown
	SID       string // Windows: the user
}
