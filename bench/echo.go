package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// playEcho is the floor of a request: lines go back as they came.
func playEcho(args []string) error {
	l, err := net.Listen("unix", args[0])
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				w := newWire(c)
				for {
					line, err := w.line()
					if err != nil {
						return
					}
					if _, err := c.Write(line); err != nil {
						return
					}
				}
			}()
		}
	}()
	<-ready()
	return l.Close()
}

// echo is a connection to the echoing process.
type echo struct {
	p    *child
	w    *wire
	line []byte
}

const frameSize = 300 // bytes of a request, a response or an update, its line end included

// echo returns the connection, made once a run.
func (b *bench) echo() (*echo, error) {
	if b.echoes != nil {
		return b.echoes, nil
	}
	path := filepath.Join(b.dir, "echo.sock")
	p, err := spawn("echo", path)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	b.echoes = &echo{p: p, w: newWire(c), line: []byte(strings.Repeat("x", frameSize-1) + "\n")}
	return b.echoes, nil
}

// times measures n round trips and appends them to list.
func (e *echo) times(list []time.Duration, n int) ([]time.Duration, error) {
	for range n {
		begin := time.Now()
		if _, err := e.w.c.Write(e.line); err != nil {
			return nil, err
		}
		line, err := e.w.line()
		if err != nil {
			return nil, err
		}
		list = append(list, time.Since(begin))
		if !bytes.Equal(line, e.line) {
			return nil, errWrong
		}
	}
	return list, nil
}

func (e *echo) close() error {
	e.w.close()
	return e.p.end()
}
