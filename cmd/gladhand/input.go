package main

import (
	"bufio"
	"io"
	"strings"
	"time"
)

// typedLine is a line of input, or its end.
type typedLine struct {
	text string
	at   time.Time // when it was complete
	err  error     // io.EOF at the end
}

// readLines reads lines in the background until the end, which is sent as the
// last. A reader that never ends, like a terminal, keeps its goroutine.
func readLines(r io.Reader) <-chan typedLine {
	ch := make(chan typedLine)
	go func() {
		in := bufio.NewReader(r)
		for {
			text, err := in.ReadString('\n')
			if text != "" {
				ch <- typedLine{text: strings.TrimRight(text, "\r\n"), at: time.Now()}
			}
			if err != nil {
				ch <- typedLine{err: err}
				return
			}
		}
	}()
	return ch
}
