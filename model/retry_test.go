package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// flaky fails with each of errs in turn, then says "ok". A nil among them is a
// reply that breaks off behind its first word.
type flaky struct {
	errs  []*Error
	times []time.Time
}

func (f *flaky) Name() string   { return "acme/m1" }
func (f *flaky) Limits() Limits { return Limits{} }

func (f *flaky) Generate(_ context.Context, _ Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		f.times = append(f.times, time.Now())
		if n := len(f.times); n <= len(f.errs) {
			if e := f.errs[n-1]; e != nil {
				yield(Chunk{}, e)
			} else if yield(Chunk{Text: "ha"}, nil) {
				yield(Chunk{}, &Error{Kind: KindCut})
			}
			return
		}
		yield(Chunk{Text: "ok", Stop: StopEnd}, nil)
	}
}

func repeat(e Error, n int) []*Error {
	var list []*Error
	for range n {
		list = append(list, &e)
	}
	return list
}

// R188: a provider that is overloaded six times is asked a seventh; people are
// told; waits grow and differ.
func TestRetrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []string
		for range 2 {
			f := &flaky{errs: repeat(Error{Kind: KindOverload, Status: 529}, 6)}
			began := time.Now()
			got, err := trace(t.Context(), Retrying(f, Patience{}), hello())
			if err != nil || !strings.HasSuffix(got, "text \"ok\"\nstop end\n") {
				t.Errorf("%s, %v", got, err)
			}
			if n := strings.Count(got, "notice acme/m1: overloaded (529); trying again in "); n != 6 || !strings.Contains(got, "(2nd of 10)") || !strings.Contains(got, "(7th of 10)") {
				t.Errorf("%s", got)
			}
			var waits []time.Duration
			for i := 1; i < len(f.times); i++ {
				wait := f.times[i].Sub(f.times[i-1])
				if bound := time.Second << (i - 1); wait > bound {
					t.Errorf("wait %d is %v, over %v", i, wait, bound)
				}
				waits = append(waits, wait)
			}
			if time.Since(began) > 63*time.Second {
				t.Errorf("it took %v", time.Since(began))
			}
			starts = append(starts, fmt.Sprint(waits))
		}
		if starts[0] == starts[1] {
			t.Errorf("both waited %s", starts[0])
		}
	})
}

func TestRetryEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		errs  []*Error
		tries int
		kind  Kind
		says  string
	}{
		{"ten", repeat(Error{Kind: KindOverload, Text: "overloaded"}, 20), 10, KindOverload, "given up after 10 tries"},
		{"offline", repeat(Error{Kind: KindOffline, Text: "no address"}, 20), 3, KindOffline, "given up after 3 tries"},
		{"a key", repeat(Error{Kind: KindKey, Text: "refused"}, 20), 1, KindKey, "refused"},
		{"futile", repeat(Error{Kind: KindOffline, Text: "a certificate", Err: errFutile}, 20), 1, KindOffline, "a certificate"},
		{"a long wait", repeat(Error{Kind: KindRate, Text: "too many requests", RetryAfter: 2 * time.Hour}, 20), 1, KindQuota, "asks to wait for 2 h"},
		{"at the limit", repeat(Error{Kind: KindRate, RetryAfter: maxRetryAfter / 4}, 20), 4, KindRate, "given up after 4 tries"},
		{"said something", []*Error{nil}, 1, KindCut, ""},
		{"said something later", []*Error{{Kind: KindStall}, nil}, 2, KindCut, ""},
		{"one that passes", repeat(Error{Kind: KindCut}, 1), 2, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &flaky{errs: c.errs}
				began := time.Now()
				_, err := trace(t.Context(), Retrying(f, Patience{}), hello())
				var e *Error
				if errors.As(err, &e); len(f.times) != c.tries || (c.kind == "") != (err == nil) || err != nil && (e.Kind != c.kind || !strings.Contains(e.Text, c.says)) {
					t.Errorf("%d tries, %v", len(f.times), err)
				}
				if time.Since(began) > 10*time.Minute {
					t.Errorf("it took %v", time.Since(began))
				}
			})
		})
	}
	if e := repeat(Error{Kind: KindOverload, Text: "overloaded"}, 20)[0]; strings.Contains(e.Text, "given up") {
		t.Error("the model's own error was changed")
	}
}

// What the provider asks for is waited for, and not much longer.
func TestRetryAfterIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{errs: repeat(Error{Kind: KindRate, Status: 429, RetryAfter: 20 * time.Second}, 1)}
		got, err := trace(t.Context(), Retrying(f, Patience{}), hello())
		if wait := f.times[1].Sub(f.times[0]); err != nil || wait < 20*time.Second || wait > 26*time.Second || !strings.Contains(got, "too many requests (429)") {
			t.Errorf("%v, %s, %v", wait, got, err)
		}
	})
}

// A wait ends with ctx; so does one that nobody listens to.
func TestRetryCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		f := &flaky{errs: repeat(Error{Kind: KindRate, RetryAfter: time.Minute}, 3)}
		began := time.Now()
		if _, err := trace(ctx, Retrying(f, Patience{}), hello()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		f = &flaky{errs: repeat(Error{Kind: KindRate}, 3)}
		for range Retrying(f, Patience{}).Generate(t.Context(), hello()) {
			break // at the notice
		}
		if len(f.times) != 1 {
			t.Errorf("%d tries for nobody", len(f.times))
		}
	})
}

// Over the wire: 529 and then a reply.
func TestRetryOverHTTP(t *testing.T) {
	for name, open := range makers {
		var n atomic.Int32
		w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
			if n.Add(1) < 4 {
				rw.Header().Set("Retry-After-Ms", "1")
				rw.WriteHeader(529)
				_, _ = rw.Write([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
				return
			}
			stream(rw, transcript(t, name, "hello"))
		})
		got, err := trace(t.Context(), Retrying(open(w.endpoint()), Patience{}), hello())
		if err != nil || strings.Count(got, "overloaded (529)") != 3 || !strings.Contains(got, "Hello") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestOrdinal(t *testing.T) {
	got := ""
	for _, n := range []int{1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 101, 111} {
		got += ordinal(n) + " "
	}
	if got != "1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 101st 111th " {
		t.Error(got)
	}
}
