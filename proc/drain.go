package proc

import (
	"io"
	"os"
)

// drain moves one output of a process to its writer, until the end of the
// output or until it is cut.
type drain struct {
	r    *os.File
	w    io.Writer
	done chan struct{}
	err  error // of w, valid once done is closed
}

func (d *drain) run() {
	defer close(d.done)
	defer d.r.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := d.r.Read(buf)
		d.write(buf[:n])
		if err != nil {
			break
		}
	}
	// Cut, not ended: what the main process wrote is still in the pipe.
	readRest(d.r, buf, d.write)
}

func (d *drain) write(b []byte) {
	if len(b) == 0 || d.err != nil {
		return
	}
	_, d.err = d.w.Write(b)
}
