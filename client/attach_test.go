package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gladhand"
	"gladhand/rpc"
)

// logged serves attach over a log of n updates, and cuts the connection after as
// many of them as cut says.
func logged(t *testing.T, n int, cut func() int) func(*fake, *rpc.Conn, *rpc.Request) {
	return func(_ *fake, c *rpc.Conn, r *rpc.Request) {
		p := params[gladhand.AttachParams](t, r)
		after := 0
		if p.After != nil {
			after = int(*p.After)
		}
		r.Reply(attachResult(n))
		go func() {
			left := cut()
			// Every third number has three parts.
			for i := after + 1; i <= n; i++ {
				parts := 1
				if i%3 == 0 {
					parts = 3
				}
				for part := range parts {
					if left == 0 {
						_ = c.Flush(context.Background())
						c.Close()
						return
					}
					left--
					if c.Send(context.Background(), update(i, i, part < parts-1, fmt.Sprintf("%d.%d", i, part))) != nil {
						return
					}
				}
			}
		}()
	}
}

// R010, R008: whatever breaks, each number is seen once, in order.
func TestAttachGoesOnBehindTheLastNumber(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			const n = 60
			f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
				gladhand.MethodAttach: logged(t, n, func() int {
					mu.Lock()
					defer mu.Unlock()
					return rng.IntN(30)
				}),
			})
			c := f.client(Options{})
			a, err := c.Attach(t.Context(), gladhand.AttachParams{SessionID: "s"})
			if err != nil {
				t.Fatal(err)
			}
			if a.Session() != "s1" {
				t.Fatalf("session %q", a.Session())
			}
			var got, want []string
			for i := 1; i <= n; i++ {
				for part := range map[bool]int{true: 3, false: 1}[i%3 == 0] {
					want = append(want, fmt.Sprintf("%d.%d", i, part))
				}
			}
			lost, back := 0, 0
			for len(got) < len(want) {
				u, err := a.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				switch u.Link {
				case Lost:
					lost++
				case Back:
					back++
				default:
					got = append(got, text(u))
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Fatalf("got %v", got)
			}
			if lost != back {
				t.Errorf("lost %d times, back %d times", lost, back)
			}
			c.Close()
		})
	}
}

func TestGapsAndRepeatsAreErrors(t *testing.T) {
	for name, second := range map[string]int{"gap": 4, "repeat": 1} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
				gladhand.MethodAttach: func(_ *fake, c *rpc.Conn, r *rpc.Request) {
					r.Reply(attachResult(1))
					_ = c.Send(context.Background(), update(1, 2, false, "a"), update(second, 5, false, "b"))
				},
			})
			a, err := f.client(Options{}).Attach(t.Context(), gladhand.AttachParams{SessionID: "s1"})
			if err != nil {
				t.Fatal(err)
			}
			if u, err := a.Next(t.Context()); err != nil || text(u) != "a" {
				t.Fatalf("%v %v", u, err)
			}
			var gap *GapError
			if _, err := a.Next(t.Context()); !errors.As(err, &gap) || gap.Want != 3 || int(gap.Got) != second {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// What a stock attachment is sent before ours is none of ours; what stands
// directly behind the answer is.
func TestUpdatesAroundTheAnswerOfAnAttach(t *testing.T) {
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodAttach: func(_ *fake, c *rpc.Conn, r *rpc.Request) {
			ctx := context.Background()
			_ = c.Send(ctx, update(1, 1, false, "stock"), update(2, 2, false, "stock"))
			r.Reply(attachResult(2))
			_ = c.Send(ctx, update(3, 3, false, "ours"))
		},
	})
	c := f.client(Options{})
	for range 50 {
		tail := int64(-1)
		a, err := c.Attach(t.Context(), gladhand.AttachParams{SessionID: "s1", After: &tail})
		if err != nil {
			t.Fatal(err)
		}
		if u, err := a.Next(t.Context()); err != nil || text(u) != "ours" {
			t.Fatalf("%v %v", u, err)
		}
	}
}

func TestSessionThatIsGoneEndsItsAttachment(t *testing.T) {
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodAttach: func(_ *fake, c *rpc.Conn, r *rpc.Request) {
			r.Reply(attachResult(1))
			_ = c.Send(context.Background(), update(1, 1, false, "last"))
			_ = c.Notify(context.Background(), gladhand.MethodGone, gladhand.GoneParams{
				SessionID: "s1", Error: gladhand.TurnError{Code: gladhand.CodeNotFound, Message: "the session was killed", Data: json.RawMessage(`{"reason":"gone"}`)},
			})
		},
	})
	a, err := f.client(Options{}).Attach(t.Context(), gladhand.AttachParams{SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	if u, err := a.Next(t.Context()); err != nil || text(u) != "last" {
		t.Fatalf("%v %v", u, err)
	}
	if _, err := a.Next(t.Context()); gladhand.ReasonOf(err) != gladhand.ReasonGone || err.Error() != "the session was killed" {
		t.Fatalf("got %v", err)
	}
}

// R149: a consumer that does not read holds a few MiB here and stops its
// connection; a call of the same client is answered all the same.
func TestSlowReaderIsBoundedAndStillCalls(t *testing.T) {
	big := strings.Repeat("x", 256<<10)
	const n = 48 // 12 MiB
	sent := make(chan int, n)
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodAttach: func(_ *fake, c *rpc.Conn, r *rpc.Request) {
			r.Reply(attachResult(n))
			go func() {
				for i := 1; i <= n; i++ {
					if c.Send(context.Background(), update(i, i, false, big)) != nil {
						return
					}
					sent <- i
				}
			}()
		},
		gladhand.MethodStatus: func(_ *fake, _ *rpc.Conn, r *rpc.Request) { r.Reply(gladhand.StatusResult{PID: 7}) },
	})
	synctest.Test(t, func(t *testing.T) {
		f.t = t
		sent = make(chan int, n)
		c := f.client(Options{})
		a, err := c.Attach(t.Context(), gladhand.AttachParams{SessionID: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // all that can happen without a reader has happened
		if got := len(sent); got > 24 {
			t.Errorf("%d of %d updates were taken from the daemon with nobody reading", got, n)
		}
		if st, err := c.Status(t.Context()); err != nil || st.PID != 7 {
			t.Fatalf("%v %v", st, err)
		}
		for i := 1; i <= n; i++ {
			u, err := a.Next(t.Context())
			if err != nil || int(u.Meta.To) != i {
				t.Fatalf("%d: %v %v", i, u.Meta, err)
			}
		}
		c.Close()
	})
}

func TestDetachStopsAndTellsTheDaemon(t *testing.T) {
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodAttach: logged(t, 5, func() int { return 100 }),
		gladhand.MethodDetach: func(_ *fake, _ *rpc.Conn, r *rpc.Request) { r.Reply(struct{}{}) },
	})
	c := f.client(Options{})
	a, err := c.Attach(t.Context(), gladhand.AttachParams{SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Next(t.Context()); gladhand.ReasonOf(err) != gladhand.ReasonGone {
		t.Errorf("got %v", err)
	}
	if f.count(gladhand.MethodDetach) != 1 {
		t.Error("the daemon was not told")
	}
}

// A session that cannot be attached to again ends its attachment, not the client.
func TestAttachRefusedAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
			gladhand.MethodAttach: func(_ *fake, _ *rpc.Conn, r *rpc.Request) {
				if times++; times == 1 {
					r.Reply(attachResult(0))
					return
				}
				r.Fail(gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, "there is no session"))
			},
			gladhand.MethodStatus: func(_ *fake, _ *rpc.Conn, r *rpc.Request) { r.Reply(gladhand.StatusResult{PID: 7}) },
		})
		c := f.client(Options{})
		a, err := c.Attach(t.Context(), gladhand.AttachParams{SessionID: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		f.last().Close()
		if u, err := a.Next(t.Context()); err != nil || u.Link != Lost {
			t.Fatalf("%v %v", u, err)
		}
		if _, err := a.Next(t.Context()); gladhand.ReasonOf(err) != gladhand.ReasonNotFound {
			t.Fatalf("got %v", err)
		}
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
}

// A daemon that said it stops is waited for, not started again.
func TestStoppedDaemonIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
			gladhand.MethodAttach: logged(t, 3, func() int { return 100 }),
		})
		started := 0
		c := f.client(Options{Start: func(Options) (<-chan struct{}, error) { started++; return nil, errors.New("started") }})
		zero := int64(3)
		a, err := c.Attach(t.Context(), gladhand.AttachParams{SessionID: "s1", After: &zero})
		if err != nil {
			t.Fatal(err)
		}
		f.setDown(true)
		f.last().Refuse(gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "the daemon is stopping"))
		if u, err := a.Next(t.Context()); err != nil || u.Link != Lost {
			t.Fatalf("%v %v", u, err)
		}
		time.AfterFunc(5*time.Second, func() { f.setDown(false) })
		if u, err := a.Next(t.Context()); err != nil || u.Link != Back {
			t.Fatalf("%v %v", u, err)
		}
		if started != 0 {
			t.Errorf("a daemon was started %d times", started)
		}
		f.setDown(true)
		f.last().Refuse(gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "the daemon is stopping"))
		if u, err := a.Next(t.Context()); err != nil || u.Link != Lost {
			t.Fatalf("%v %v", u, err)
		}
		if _, err := a.Next(t.Context()); gladhand.ReasonOf(err) != gladhand.ReasonUnavailable {
			t.Fatalf("got %v", err)
		}
		c.Close()
	})
}
