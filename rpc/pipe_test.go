package rpc

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type deadliner interface {
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

func TestPipeCarriesBytes(t *testing.T) {
	a, b := Pipe()
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	go func() {
		for rest := sent; len(rest) > 0; {
			n := min(1+rand.IntN(100_000), len(rest))
			if _, err := a.Write(rest[:n]); err != nil {
				t.Error(err)
				return
			}
			rest = rest[n:]
		}
		a.Close()
	}()
	var got []byte
	for {
		buf := make([]byte, 1+rand.IntN(100_000))
		n, err := b.Read(buf)
		got = append(got, buf[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes arrived otherwise", len(got))
	}
}

func TestPipeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		text := strings.Repeat("x", pipeSize)
		if n, err := a.Write([]byte(text)); n != pipeSize || err != nil {
			t.Fatal(n, err)
		}
		if n, err := a.(TryWriter).TryWrite([]byte("y")); n != 0 || err != nil {
			t.Error(n, err)
		}
		a.(deadliner).SetWriteDeadline(time.Now().Add(time.Minute))
		start := time.Now()
		if n, err := a.Write([]byte("y")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(n, err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("after %v", took)
		}
		var e net.Error
		if _, err := a.Write([]byte("y")); !errors.As(err, &e) || !e.Timeout() {
			t.Error(err)
		}
		a.(deadliner).SetWriteDeadline(time.Time{})
		go io.CopyN(io.Discard, b, 10)
		if n, err := a.Write([]byte("0123456789")); n != 10 || err != nil {
			t.Error(n, err)
		}
		// Closing ends a write that waits.
		done := make(chan error)
		go func() {
			_, err := a.Write([]byte("z"))
			done <- err
		}()
		synctest.Wait()
		b.Close()
		if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
}

func TestPipeDeadlinesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		buf := make([]byte, 10)
		start := time.Now()
		b.(deadliner).SetReadDeadline(time.Now().Add(time.Second))
		if _, err := b.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Error(err, time.Since(start))
		}
		b.(deadliner).SetDeadline(time.Time{})
		done := make(chan error)
		go func() {
			_, err := b.Read(buf)
			done <- err
		}()
		synctest.Wait()
		b.(deadliner).SetReadDeadline(time.Now()) // wakes it
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		b.(deadliner).SetReadDeadline(time.Time{})

		a.Write([]byte("last"))
		a.(interface{ CloseWrite() error }).CloseWrite()
		if n, err := b.Read(buf); string(buf[:n]) != "last" || err != nil {
			t.Error(n, err)
		}
		if _, err := b.Read(buf); err != io.EOF {
			t.Error(err)
		}
		b.Write([]byte("still"))
		if n, err := a.Read(buf); string(buf[:n]) != "still" || err != nil {
			t.Error(n, err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
		b.Close()
		if _, err := a.Read(buf); err != io.EOF {
			t.Error(err)
		}
		if _, err := b.Read(buf); !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := a.(deadliner).SetDeadline(time.Now()); err == nil {
			t.Error("a closed pipe takes a deadline")
		}
	})
}
