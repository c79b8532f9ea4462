package session

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gladhand"
	"gladhand/acp"
)

var options = []gladhand.Option{
	{ID: "yes", Name: "Allow", Kind: gladhand.AllowOnce},
	{ID: "always", Name: "Always", Kind: gladhand.AllowAlways},
	{ID: "no", Name: "Deny", Kind: gladhand.RejectOnce},
}

// asker asks once a turn; an allowed effect counts, after its start was stored.
type asker struct {
	effects  atomic.Int64
	verdicts chan gladhand.Verdict
	rule     string
}

func (a *asker) run(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	call := acp.ToolState{ID: fmt.Sprintf("t%d", t.ID()), Title: "Run ls", Kind: "execute", Status: "pending"}
	if err := t.Emit(ctx, acp.ToolCall(call)); err != nil {
		return gladhand.StopCancelled, nil
	}
	v, err := t.Ask(ctx, gladhand.Ask{Title: "Run ls?", ToolCall: acp.AskedToolCall(call), Options: options, Digest: "d", Rule: a.rule})
	if a.verdicts != nil {
		a.verdicts <- v
	}
	if err != nil {
		return gladhand.StopCancelled, nil
	}
	if !v.Allowed() {
		return gladhand.StopEndTurn, nil
	}
	if err := t.Emit(ctx, acp.ToolUpdate(acp.ToolState{ID: call.ID, Status: "in_progress"})); err != nil {
		return gladhand.StopCancelled, nil
	}
	a.effects.Add(1)
	return gladhand.StopEndTurn, nil
}

func (r *reader) ask(t *testing.T, n gladhand.TurnID) gladhand.Ask {
	t.Helper()
	ev := r.until(t, fmt.Sprintf("the ask of turn %d", n), func(ev *gladhand.Event) bool {
		return ev.Tag == gladhand.TagAsk && ev.Turn == n
	})
	return decode[gladhand.AskUpdate](t, ev).Ask
}

// Four clients answer, cancel and leave at once: one verdict, at most one
// effect, and everybody is told the same. R035, R037, R040, R041, R042.
func TestAskRaces(t *testing.T) {
	a := &asker{}
	b := newBench(t, a.run, Options{})
	s := b.session()
	watch := follow(t, s, person("watch"), 0)
	r := rand.New(rand.NewPCG(7, 7))
	for n := range times(250, 10000) {
		race(t, s, a, watch, r, gladhand.TurnID(n+1))
		if n%50 == 49 { // a reader keeps what it saw; start again with little
			watch.cancel()
			watch = follow(t, s, person("watch"), -1)
		}
	}
}

func race(t *testing.T, s *Session, a *asker, watch *reader, r *rand.Rand, n gladhand.TurnID) {
	t.Helper()
	before := a.effects.Load()
	leaver, _, err := s.Attach(person("leaver"), -1, false)
	if err != nil {
		t.Fatal(err)
	}
	mustSend(t, s, person("ana"), "", "go")
	ask := watch.ask(t, n)
	type told struct {
		who, option string
		res         gladhand.AnswerResult
		err         error
	}
	tolds := make(chan told, 8)
	start := make(chan struct{})
	var wg sync.WaitGroup
	act := func(spin int, f func()) {
		wg.Go(func() {
			<-start
			for range spin {
				runtime.Gosched()
			}
			f()
		})
	}
	for who, option := range map[string]string{"allower": "yes", "denier": "no"} {
		for range 1 + r.IntN(2) { // twice: a double click
			act(r.IntN(40), func() {
				res, err := answerAsk(s, person(who), ask.ID, option)
				tolds <- told{who, option, res, err}
			})
		}
	}
	cancels := r.IntN(3) == 0
	if cancels {
		act(r.IntN(60), func() {
			if err := s.Cancel(person("canceller")); err != nil {
				t.Error(err)
			}
		})
	}
	act(r.IntN(40), func() { s.Decline(leaver, ask.ID); s.Detach(leaver) })
	close(start)
	wg.Wait()
	close(tolds)
	end := watch.untilEnd(t, n)
	answers := 0
	var verdict gladhand.AnswerUpdate
	for _, it := range watch.seen() {
		if it.Event.Tag == gladhand.TagAnswer && it.Event.Turn == n {
			answers++
			verdict = decode[gladhand.AnswerUpdate](t, it.Event)
		}
	}
	if answers != 1 {
		t.Fatalf("turn %d has %d verdicts", n, answers)
	}
	accepted := 0
	for got := range tolds {
		switch {
		case got.err != nil:
			t.Fatalf("turn %d: %v", n, got.err)
		case got.res.Status == gladhand.AnswerAccepted:
			accepted++
			if verdict.Settled != gladhand.SettledAnswered || verdict.OptionID != got.option {
				t.Fatalf("turn %d: %s was told accepted, the verdict is %+v", n, got.who, verdict)
			}
		case got.res.Status == gladhand.AnswerAlready && verdict.Settled == gladhand.SettledAnswered:
		case got.res.Status == gladhand.AnswerExpired && verdict.Settled == gladhand.SettledCancelled:
		default:
			t.Fatalf("turn %d: %s was told %+v, the verdict is %+v", n, got.who, got.res, verdict)
		}
	}
	if accepted > 1 || (accepted == 0) != (verdict.Settled != gladhand.SettledAnswered) {
		t.Fatalf("turn %d: %d answers were accepted, the verdict is %+v", n, accepted, verdict)
	}
	effects := a.effects.Load() - before
	allowed := verdict.Settled == gladhand.SettledAnswered && verdict.OptionID == "yes"
	if effects > 1 || effects == 1 && !allowed || effects == 0 && allowed && end.StopReason != gladhand.StopCancelled {
		t.Fatalf("turn %d had %d effects; the verdict is %+v, the end %+v", n, effects, verdict, end)
	}
}

// Cancelling at any point of a prompt ends it, and its turn if it had begun,
// once; nothing stays open, and the next prompt runs. R017, R018, R020, R022,
// R023, R027.
func TestCancelAtRandomPoints(t *testing.T) {
	a := &asker{}
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		for range 3 {
			if err := say(ctx, t, fmt.Sprintf("m%d", t.ID()), "word "); err != nil {
				return gladhand.StopCancelled, nil
			}
		}
		return a.run(ctx, t)
	}, Options{})
	s := b.session()
	r := rand.New(rand.NewPCG(3, 3))
	watch := follow(t, s, person("ana"), 0)
	for n := range times(200, 2000) {
		before, id := a.effects.Load(), gladhand.PromptID(fmt.Sprintf("p%d", n))
		mustSend(t, s, person("ana"), string(id), "go")
		for range r.IntN(3000) {
			runtime.Gosched()
		}
		if open := s.Asks(person("bo")); len(open) > 0 && r.IntN(2) == 0 {
			go func() { _, _ = answerAsk(s, person("bo"), open[0].ID, "yes") }()
		}
		if err := s.Cancel(person("ana")); err != nil {
			t.Fatal(err)
		}
		watch.until(t, "the end of "+string(id), func(ev *gladhand.Event) bool { return ends(t, ev, id) })
		if a.effects.Load()-before > 1 {
			t.Fatalf("%s had more than one effect", id)
		}
	}
	begun, ended := map[gladhand.TurnID]int{}, map[gladhand.TurnID]int{}
	for _, it := range watch.seen() {
		switch it.Event.Tag {
		case gladhand.TagTurnStart:
			begun[it.Event.Turn]++
		case gladhand.TagTurnEnd:
			ended[it.Event.Turn]++
		}
	}
	if !maps.Equal(begun, ended) {
		t.Fatalf("turns begun %v, ended %v", begun, ended)
	}
	if open := s.Asks(person("ana")); len(open) != 0 {
		t.Fatalf("asks are left open: %+v", open)
	}
}

// ends reports whether the event is the last that a prompt has.
func ends(t *testing.T, ev *gladhand.Event, id gladhand.PromptID) bool {
	switch ev.Tag {
	case gladhand.TagPrompt:
		p := decode[gladhand.PromptUpdate](t, ev)
		return p.PromptID == id && p.State == gladhand.PromptDone
	case gladhand.TagTurnEnd:
		return slices.Contains(decode[gladhand.TurnUpdate](t, ev).Prompts, id)
	}
	return false
}

// R032, R033: "always" settles the open asks it covers, and those alone.
func TestAlwaysSettlesEqualAsks(t *testing.T) {
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		var wg sync.WaitGroup
		verdicts := make([]gladhand.Verdict, 4)
		for i, rule := range []string{"ls", "ls", "rm", "ls"} {
			wg.Go(func() {
				verdicts[i], _ = t.Ask(ctx, gladhand.Ask{Title: rule, Options: options, Rule: rule})
			})
		}
		wg.Wait()
		n := 0
		for _, v := range verdicts {
			if v.Allowed() {
				n++
			}
		}
		again, err := t.Ask(ctx, gladhand.Ask{Title: "ls", Options: options, Rule: "ls"})
		if err != nil || n != 3 || verdicts[2].Allowed() || again.Settled != gladhand.SettledByRule {
			return "", errScript
		}
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "", "go")
	asks := map[string][]gladhand.Ask{}
	for n := 0; n < 4; n++ {
		seen := 0
		ev := watch.until(t, "four asks", func(ev *gladhand.Event) bool {
			if ev.Tag == gladhand.TagAsk {
				seen++
			}
			return ev.Tag == gladhand.TagAsk && seen == n+1
		})
		ask := decode[gladhand.AskUpdate](t, ev).Ask
		asks[ask.Rule] = append(asks[ask.Rule], ask)
	}
	if res, err := answerAsk(s, person("bo"), asks["ls"][0].ID, "always"); err != nil || res.Status != gladhand.AnswerAccepted {
		t.Fatalf("%+v %v", res, err)
	}
	if res, err := answerAsk(s, person("bo"), asks["rm"][0].ID, "no"); err != nil || res.Status != gladhand.AnswerAccepted {
		t.Fatalf("%+v %v", res, err)
	}
	if end := watch.untilEnd(t, 1); end.StopReason != gladhand.StopEndTurn {
		t.Fatalf("%+v", end)
	}
	b.stop()
	b.start()
	again, err := b.host.Open(context.Background(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	again.mu.Lock()
	defer again.mu.Unlock()
	if !again.remembers("ls") || again.remembers("rm") {
		t.Fatalf("remembered rules: %s", again.row.Rules)
	}
}

// R031: an open ask is state, not only an event.
func TestAsksAreStateAndAnswersAreChecked(t *testing.T) {
	a := &asker{}
	b := newBench(t, a.run, Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "", "go")
	ask := watch.ask(t, 1)
	if got := b.host.Asks(person("bo")); len(got) != 1 || got[0].ID != ask.ID || s.Info().State != gladhand.StateAsking {
		t.Fatalf("open asks %+v, state %s", got, s.Info().State)
	}
	if _, err := answerAsk(s, person("bo"), ask.ID, "perhaps"); gladhand.CodeOf(err) != gladhand.CodeInvalidParams {
		t.Fatalf("an option that is none: %v", err)
	}
	c := make(chan error, 1)
	s.Answer(person("bo"), ask.ID, gladhand.Answer{Option: "yes", Digest: "other"}, func(_ gladhand.AnswerResult, err error) { c <- err })
	if err := <-c; gladhand.CodeOf(err) != gladhand.CodeConflict {
		t.Fatalf("an answer to something else: %v", err)
	}
	if res, err := answerAsk(s, person("bo"), "nothing", "yes"); err != nil || res.Status != gladhand.AnswerUnknown {
		t.Fatalf("an unknown ask: %+v %v", res, err)
	}
	if res, err := answerAsk(s, person("bo"), ask.ID, "yes"); err != nil || res.Status != gladhand.AnswerAccepted {
		t.Fatalf("%+v %v", res, err)
	}
	watch.untilEnd(t, 1)
	if a.effects.Load() != 1 {
		t.Fatal("no effect")
	}
}

// With nobody there an ask waits for its time, and is denied; with somebody who
// may answer it waits; when its sender says nobody will come it is denied at once.
func TestAskExpiry(t *testing.T) {
	a := &asker{verdicts: make(chan gladhand.Verdict, 1)}
	b := newBench(t, a.run, Options{AskExpiry: time.Hour})
	s := b.session()
	mustSend(t, s, person("ana"), "", "go")
	for len(b.host.Asks(person("ana"))) == 0 {
		runtime.Gosched()
	}
	s.mu.Lock()
	var open *openAsk
	for _, o := range s.asks {
		open = o
	}
	armed := open.expiry != nil
	s.mu.Unlock()
	if !armed {
		t.Fatal("nobody is there, and the ask would wait for ever")
	}
	at, _, err := s.Attach(person("bo"), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	armed = open.expiry != nil
	s.mu.Unlock()
	if armed {
		t.Fatal("somebody is there, and the ask would expire")
	}
	s.Detach(at)
	s.expire(open) // what the clock does after an hour
	if v := <-a.verdicts; v.Settled != gladhand.SettledExpired || v.Allowed() {
		t.Fatalf("verdict %+v", v)
	}
	script, _, err := s.Attach(person("script"), 0, true)
	if err != nil {
		t.Fatal(err)
	}
	mustSend(t, s, script.Who, "", "go")
	if v := <-a.verdicts; v.Settled != gladhand.SettledDenied {
		t.Fatalf("verdict %+v", v)
	}
}

// A client that says it cannot answer is not waited for again in that ask; the
// last one's refusal denies.
func TestDecline(t *testing.T) {
	a := &asker{verdicts: make(chan gladhand.Verdict, 1)}
	b := newBench(t, a.run, Options{})
	s := b.session()
	one := follow(t, s, person("one"), 0)
	two := follow(t, s, person("two"), 0)
	mustSend(t, s, person("one"), "", "go")
	ask := one.ask(t, 1)
	s.Decline(one.a, ask.ID)
	if len(s.Asks(person("two"))) != 1 {
		t.Fatal("the first client's refusal settled the ask")
	}
	s.Decline(two.a, ask.ID)
	if v := <-a.verdicts; v.Settled != gladhand.SettledDenied || v.By == nil || v.By.Name != "two" {
		t.Fatalf("verdict %+v", v)
	}
	one.untilEnd(t, 1)
}
