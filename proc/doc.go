// Package proc is where gladhand meets the operating system: the place a
// daemon lives, its endpoint, who is at the other end of a connection, and the
// processes we start.
//
// # A place and its endpoint
//
// [Locate] turns flags and environment into a [Place]: a data directory and an
// endpoint, which is a Unix socket or, on Windows, a named pipe. It only
// computes; daemon and client call it with the same inputs and get the same
// answer. The daemon then listens and the client dials:
//
//	place, err := proc.Locate("", "", os.Getenv)
//	l, err := proc.Listen(place)      // the daemon
//	c, err := proc.Dial(ctx, place)   // a client
//	who, err := proc.Peer(c)          // either end, about the other
//
// [Listen] holds an OS lock in the data directory until its listener is closed
// or its process ends, however it ends. Pids in files are for messages only; no
// decision rests on one. Under the lock it probes the endpoint by connecting:
// whoever answers keeps it, only a socket nobody listens on is removed. Two
// daemons therefore never share a data directory or an endpoint, and a crash
// leaves nothing that stops the next start.
//
// Both ends check the other's user: [Dial] refuses a server of another user,
// and the daemon asks [Peer] and [SameUser] about each connection it accepts.
//
// # Processes
//
// [Command] starts a process without a terminal, in a group of its own, with
// descriptors 0, 1 and 2 alone. It never hangs on what the process left
// behind: Wait returns when the main process has ended, and ends the rest of
// the group. [StartDaemon] runs this binary again, detached.
//
// # Files
//
// [PrepareDir] makes a directory private; [Lock] is a lock that dies with its
// process. Both refuse symbolic links and what belongs to somebody else, and
// say what to do about it.
package proc
