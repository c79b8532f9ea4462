package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// Patience is how long [Retrying] goes on. Zero fields are the defaults.
type Patience struct {
	Tries   int           // requests in all: 10
	Offline int           // of them while the provider cannot be reached: 3
	Budget  time.Duration // from the first request to the last: 10 minutes
	First   time.Duration // the longest first wait, doubled each time: 1 second
	Max     time.Duration // the longest wait: 1 minute
}

// maxRetryAfter is the longest wait that a provider can ask for; more is a limit
// that people have to know of.
const maxRetryAfter = 10 * time.Minute

// Retrying is m, asked again when it fails in a way that passes by ([Kind.Retryable])
// before it has said anything. It announces each wait in a Chunk's Notice. Waits
// grow, and are random: sessions that failed together do not come back together.
//
// An error in the middle of a reply is passed on: whether what came stands, only
// the caller knows.
func Retrying(m Model, p Patience) Model {
	return retrying{m, Patience{
		Tries: orElse(p.Tries, 10), Offline: orElse(p.Offline, 3), Budget: orElse(p.Budget, 10*time.Minute),
		First: orElse(p.First, time.Second), Max: orElse(p.Max, time.Minute),
	}}
}

type retrying struct {
	Model
	p Patience
}

// Unwrap returns the model that is asked.
func (r retrying) Unwrap() Model { return r.Model }

// Generate implements [Model].
func (r retrying) Generate(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		began := time.Now()
		for try := 1; ; try++ {
			err, gone := r.once(ctx, req, yield)
			if gone {
				return
			}
			wait, tries, last := r.next(err, try, time.Since(began))
			if last != nil {
				yield(Chunk{}, last)
				return
			}
			notice := fmt.Sprintf("%s: %s; trying again in %s (%s of %d)", r.Name(), brief(err), span(wait), ordinal(try+1), tries)
			if !yield(Chunk{Notice: notice}, nil) {
				return
			}
			if err := pause(ctx, wait); err != nil {
				yield(Chunk{}, err)
				return
			}
		}
	}
}

// once asks once. It returns an error to try again after, unless all has been
// said.
func (r retrying) once(ctx context.Context, req Request, yield func(Chunk, error) bool) (failed *Error, done bool) {
	said := false
	for chunk, err := range r.Model.Generate(ctx, req) {
		if err != nil {
			if said || !errors.As(err, &failed) {
				yield(Chunk{}, err)
				return nil, true
			}
			return failed, false
		}
		said = said || chunk.Text != "" || chunk.Thought != "" || chunk.State != nil || chunk.Call != nil || chunk.Stop != ""
		if !yield(chunk, nil) {
			return nil, true
		}
	}
	return nil, true
}

// next decides what comes after a failure: a wait, with the number of tries that
// it is one of, or the error that is the last.
func (r retrying) next(err *Error, try int, spent time.Duration) (wait time.Duration, tries int, last error) {
	tries = r.p.Tries
	if err.Kind == KindOffline {
		tries = min(tries, r.p.Offline)
	}
	if !err.Kind.Retryable() || errors.Is(err, errFutile) {
		return 0, 0, err
	}
	if err.RetryAfter > maxRetryAfter {
		far := *err
		far.Kind = KindQuota
		far.Text += "; it asks to wait for " + span(err.RetryAfter)
		far.Mend = "Wait that long, or choose another model with /model"
		return 0, 0, &far
	}
	wait = r.wait(try)
	if err.RetryAfter > 0 {
		wait = err.RetryAfter + jitter(min(err.RetryAfter/4+100*time.Millisecond, 5*time.Second))
	}
	if try >= tries || spent+wait > r.p.Budget {
		if try == 1 {
			return 0, 0, err
		}
		worn := *err
		worn.Text += fmt.Sprintf("; given up after %d tries in %s", try, span(spent))
		return 0, 0, &worn
	}
	return wait, tries, nil
}

// wait is full jitter: anything up to a bound that doubles.
func (r retrying) wait(try int) time.Duration {
	bound := r.p.Max
	if shift := try - 1; shift < 20 {
		bound = min(bound, r.p.First<<shift)
	}
	return jitter(bound)
}

func jitter(bound time.Duration) time.Duration { return rand.N(max(bound, 1)) }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// brief is why there is a wait, in a few words.
func brief(err *Error) string {
	s := map[Kind]string{
		KindRate: "too many requests", KindOverload: "overloaded", KindOffline: "cannot be reached",
		KindStall: "nothing came", KindCut: "the reply broke off",
	}[err.Kind]
	if err.Status > 0 {
		if err.Kind == KindOverload && err.Status != 529 && err.Status != 503 {
			s = "the server failed"
		}
		s = fmt.Sprintf("%s (%d)", s, err.Status)
	}
	return s
}

func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}
