package rpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs f in a synctest bubble with a served Pipe.
func bubble(t *testing.T, o Options, f func(t *testing.T, s *served)) {
	t.Helper()
	for _, name := range []string{"pipe", "plain"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, serve(t, transports[name], o)) })
		})
	}
}

const timeoutError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message took too long to arrive","data":{"reason":"frame_timeout","limit_ms":30000}}}`

// A frame's time runs from its first byte, however it trickles in.
func TestFrameTimeout(t *testing.T) {
	bubble(t, Options{Handler: echoHandler}, func(t *testing.T, s *served) {
		s.write(idCase("1"))
		for range 29 {
			time.Sleep(time.Second)
			s.write(" ")
		}
		s.write("\n{")
		if m := parseMessage(t, s.line()); string(m.ID) != "1" {
			t.Fatalf("id %s", m.ID)
		}
		start := time.Now()
		for range 29 {
			time.Sleep(time.Second)
			s.write(" ")
		}
		if got := s.line(); got != timeoutError {
			t.Errorf("got %s", got)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("after %v", took)
		}
		s.eof()
		if err := <-s.run; err == nil || s.conn.Err() == nil {
			t.Error("Run returned nil")
		}
	})
}

// Between frames there is no limit, and one frame's time is not the next one's.
func TestNoIdleTimeout(t *testing.T) {
	bubble(t, Options{Handler: echoHandler}, func(t *testing.T, s *served) {
		for i := range 20 {
			half := idCase(fmt.Sprint(i))
			s.write(half[:10])
			time.Sleep(29 * time.Second)
			s.write(half[10:] + "\n" + half[:10])
			if m := parseMessage(t, s.line()); string(m.ID) != fmt.Sprint(i) {
				t.Fatalf("id %s", m.ID)
			}
			time.Sleep(29 * time.Second)
			s.write(half[10:] + "\n")
			s.line()
			time.Sleep(time.Hour)
		}
	})
}

// Until Ready, a connection lives for FirstFrame and ends without a word.
func TestFirstFrame(t *testing.T) {
	o := Options{Handler: echoHandler, Limits: Limits{FirstFrame: 30 * time.Second}}
	bubble(t, o, func(t *testing.T, s *served) {
		start := time.Now()
		s.eof()
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("after %v", took)
		}
		if err := <-s.run; !errors.Is(err, errNotReady) {
			t.Errorf("Run: %v", err)
		}
	})
	bubble(t, o, func(t *testing.T, s *served) {
		s.conn.Ready()
		time.Sleep(time.Hour)
		s.write(fence + "\n")
		if got := s.line(); got != fenced {
			t.Errorf("got %s", got)
		}
	})
}

// A peer that does not read is disconnected after WriteStall; its requests end.
func TestWriteStall(t *testing.T) {
	bubble(t, Options{Handler: echoHandler}, func(t *testing.T, s *served) {
		s.write(head + `"id":1,"method":"slow"}` + "\n")
		s.write(head + `"id":2,"method":"echo"}` + "\n")
		s.line()
		start := time.Now()
		errs := make(chan error, 1)
		go func() {
			for {
				if err := s.conn.Notify(t.Context(), "n", payload(1000)); err != nil {
					errs <- err
					return
				}
			}
		}()
		if err := <-s.run; !errors.Is(err, errStalled) {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("after %v", took)
		}
		if err := <-errs; !errors.Is(err, ErrClosed) || !errors.Is(err, errStalled) {
			t.Errorf("Notify: %v", err)
		}
	})
}

// A peer that reads slowly, but a frame in time, is kept.
func TestSlowReaderIsKept(t *testing.T) {
	bubble(t, Options{Handler: echoHandler}, func(t *testing.T, s *served) {
		const n, size = 60, 20_000
		go func() {
			for range n {
				if err := s.conn.Notify(t.Context(), "n", payload(size)); err != nil {
					t.Errorf("Notify: %v", err)
				}
			}
		}()
		for range n {
			time.Sleep(9 * time.Second) // three frames are in flight at a time
			if line := s.line(); len(line) < size {
				t.Fatalf("%d bytes", len(line))
			}
		}
	})
}

// Send waits while too much is unsent, and holds no more than the limit.
func TestBackpressure(t *testing.T) {
	bubble(t, Options{Handler: echoHandler, Limits: Limits{Unsent: 100_000}}, func(t *testing.T, s *served) {
		frame := []byte(head + `"method":"n","params":` + string(payload(10_000)) + `}`)
		const n = 50
		var sent int
		var mu sync.Mutex
		go func() {
			for range n {
				if err := s.conn.Send(context.Background(), frame); err != nil {
					t.Errorf("Send: %v", err)
				}
				mu.Lock()
				sent++
				mu.Unlock()
			}
		}()
		synctest.Wait()
		mu.Lock()
		if held := sent*len(frame) - pipeSize; held > 100_000 || sent == n || sent < 10 {
			t.Errorf("%d frames accepted, %d bytes over the pipe's", sent, held)
		}
		mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.conn.Send(ctx, frame, frame); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send: %v", err)
		}
		if err := s.conn.Notify(ctx, "n", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Notify: %v", err)
		}
		if err := s.conn.Call(ctx, "n", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call: %v", err)
		}
		if err := s.conn.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
		flushed := make(chan error, 1)
		go func() { flushed <- s.conn.Flush(context.Background()) }()
		// What was given up is not on the wire, all the rest is.
		for range n {
			if got := s.line(); got != string(frame) {
				t.Fatalf("got %.100s", got)
			}
		}
		if err := <-flushed; err != nil {
			t.Errorf("Flush: %v", err)
		}
		s.write(fence + "\n")
		if got := s.line(); got != fenced {
			t.Errorf("got %.100s", got)
		}
	})
}

// One frame may be larger than what may be unsent; it then goes alone.
func TestSendLarge(t *testing.T) {
	o := Options{Handler: echoHandler, Limits: Limits{Unsent: 10_000, Frame: 500_000}}
	bubble(t, o, func(t *testing.T, s *served) {
		go func() {
			s.conn.Notify(context.Background(), "small", nil)
			s.conn.Notify(context.Background(), "large", payload(400_000))
			s.conn.Notify(context.Background(), "small", nil)
		}()
		for _, want := range []string{"small", "large", "small"} {
			if m := parseMessage(t, s.line()); m.Method != want {
				t.Errorf("%s, want %s", m.Method, want)
			}
		}
		err := s.conn.Notify(context.Background(), "too large", payload(500_000))
		if !errors.Is(err, errFrameTooLarge) {
			t.Errorf("Notify: %v", err)
		}
	})
}

// Replies never wait; a peer that lets too many pile up is disconnected.
func TestUnreadReplies(t *testing.T) {
	o := Options{Handler: echoHandler, Limits: Limits{UnsentReplies: 400_000}}
	bubble(t, o, func(t *testing.T, s *served) {
		big := sized(100_000)
		go func() {
			for range 20 {
				io.WriteString(s.raw, big+"\n")
			}
		}()
		start := time.Now()
		if err := <-s.run; !errors.Is(err, errUnread) {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("after %v", took)
		}
	})
}

// The 1,025th unanswered request is refused; the connection goes on.
func TestInFlightLimit(t *testing.T) {
	bubble(t, Options{Handler: echoHandler}, func(t *testing.T, s *served) {
		var b strings.Builder
		for i := range 1024 {
			fmt.Fprintf(&b, head+`"id":%d,"method":"slow"}`+"\n", i)
		}
		b.WriteString(idCase(`"over"`) + "\n")
		s.write(b.String())
		want := `{"jsonrpc":"2.0","id":"over","error":{"code":-32004,"message":"too many requests wait for an answer; wait for some before sending more","data":{"reason":"in_flight_limit","limit":1024}}}`
		if got := s.line(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		s.write(head + `"method":"$/cancel_request","params":{"requestId":7}}` + "\n")
		if m := parseMessage(t, s.line()); string(m.ID) != "7" || m.Error == nil || m.Error.Code != CodeCancelled {
			t.Errorf("id %s, error %v", m.ID, m.Error)
		}
		s.write(idCase(`"fits"`) + "\n")
		if m := parseMessage(t, s.line()); string(m.ID) != `"fits"` || m.Error != nil {
			t.Errorf("id %s, error %v", m.ID, m.Error)
		}
	})
}

// used is how many bytes of a budget are held.
func (b *Budget) used(size int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := size - b.reserve - b.free
	if b.lent {
		used += b.reserve
	}
	return used
}

// Unfinished frames over 64 KiB share the budget: who finds it used up waits,
// and goes on when another has finished.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 512 << 10
		budget := NewBudget(size)
		o := Options{Handler: echoHandler, Limits: Limits{Budget: budget}}
		first, second := serve(t, transports["pipe"], o), serve(t, transports["pipe"], o)
		frame := sized(400 << 10)
		first.write(frame[:300<<10])
		synctest.Wait()
		if used := budget.used(size); used != 448<<10 {
			t.Errorf("%d bytes used by a buffer of 512 KiB", used)
		}
		go io.WriteString(second.raw, frame+"\n")
		synctest.Wait()
		if used := budget.used(size); used > size {
			t.Errorf("%d bytes used", used)
		}
		go first.line()
		first.write(frame[300<<10:] + "\n")
		if m := parseMessage(t, second.line()); string(m.ID) != "1" || m.Error != nil {
			t.Errorf("id %s, error %v", m.ID, m.Error)
		}
		synctest.Wait()
		if used := budget.used(size); used != 0 {
			t.Errorf("%d bytes were not given back", used)
		}
	})
}

// However many large frames arrive at once, one can always finish.
func TestBudgetGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 2 << 20
		budget := NewBudget(size)
		o := Options{Handler: echoHandler, Limits: Limits{Budget: budget, Frame: 128 << 10}}
		frame := sized(128<<10) + "\n"
		var peers []*served
		for range 40 {
			peers = append(peers, serve(t, transports["pipe"], o))
		}
		// All begin first: together they want more than there is.
		for _, s := range peers {
			go io.WriteString(s.raw, frame)
		}
		start := time.Now()
		for _, s := range peers {
			if line := s.line(); len(line) < 128<<10-100 {
				t.Fatalf("got %.200s", line)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("after %v", took)
		}
		synctest.Wait()
		if used := budget.used(size); used != 0 {
			t.Errorf("%d bytes were not given back", used)
		}
	})
}

// Who waits for the budget too long has its frame's time run out, and a
// connection that ends gives back what it drew.
func TestBudgetTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(256 << 10)
		o := Options{Handler: echoHandler, Limits: Limits{Budget: budget}}
		s := serve(t, transports["pipe"], o)
		go io.WriteString(s.raw, sized(1<<20)+"\n")
		if got := s.line(); got != timeoutError {
			t.Errorf("got %s", got)
		}
		s.eof()
		<-s.run
		if used := budget.used(256 << 10); used != 0 {
			t.Errorf("%d bytes were not given back", used)
		}
	})
}

// After a frame over a limit, what follows is not looked at.
func TestRestIsNotRead(t *testing.T) {
	var served int
	s := serve(t, unixPair, Options{Limits: Limits{Frame: 1000}, Handler: func(context.Context, *Request) { served++ }})
	go io.WriteString(s.raw, strings.Repeat("x", 1001)+"\n"+strings.Repeat(fence+"\n", 100_000))
	s.line()
	s.eof()
	<-s.run
	if served != 0 {
		t.Errorf("%d requests served", served)
	}
}

// Refuse tells the peer why, then ends; it needs no Run. The peer's connection
// says so.
func TestRefuse(t *testing.T) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			client := New(b, Options{})
			run := make(chan error, 1)
			go func() { run <- client.Run(context.Background()) }()
			call := make(chan error, 1)
			go func() { call <- client.Call(context.Background(), "initialize", nil, nil) }()
			server := New(a, Options{})
			server.Refuse(&Error{Code: CodeLimit, Message: "full", Data: []byte(`{"reason":"connection_limit","limit":1}`)})
			var e *Error
			if err := <-run; !errors.As(err, &e) || e.Code != CodeLimit || e.Message != "full" {
				t.Errorf("Run: %v", err)
			}
			if err := <-call; !errors.As(err, &e) || e.Code != CodeLimit || !errors.Is(err, ErrClosed) {
				t.Errorf("Call: %v", err)
			}
			<-server.Done()
		})
	}
}

// A client whose frame is too long learns why, though its write failed.
func TestTooLargeIsExplained(t *testing.T) {
	a, b := unixPair(t)
	server, client := New(a, Options{Limits: Limits{Frame: 100_000}}), New(b, Options{})
	go server.Run(context.Background())
	go client.Run(context.Background())
	err := client.Call(context.Background(), "x", payload(2<<20), nil)
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeInvalidRequest || !strings.Contains(string(e.Data), "frame_too_large") {
		t.Errorf("Call: %v", err)
	}
	<-server.Done()
	<-client.Done()
}

// What a peer sends that makes no sense costs no memory (R108): the log is told
// of few, and nothing is kept.
func TestFloodOfNonsense(t *testing.T) {
	s := serve(t, transports["pipe"], Options{Handler: echoHandler})
	go func() {
		w := bufio.NewWriter(s.raw)
		for i := range 30_000 {
			fmt.Fprintf(w, head+`"id":"gh-%d","result":1}`+"\n", i+1)
		}
		w.WriteString(fence + "\n")
		w.Flush()
	}()
	if got := s.line(); got != fenced {
		t.Errorf("got %s", got)
	}
	if n := openCalls(s.conn); n != 0 {
		t.Errorf("%d calls kept", n)
	}
	if n := s.conn.dropped.Load(); n != 30_000 {
		t.Errorf("%d dropped", n)
	}
}
