//go:build unix

package daemon

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gladhand"
)

// begin makes a session, follows it, and sends it a prompt with a tool call and a
// second one behind it, without waiting for anything.
func begin(v *victim, w *wire, name string, texts ...string) *point {
	v.t.Helper()
	p := &point{v: v, t: v.t, session: w.newSession(v.cwd)}
	w.attach(p.session, 0)
	for i, text := range texts {
		s := &sent{id: fmt.Sprintf("%s-p%d", name, i+1), text: text}
		s.request = w.send(gladhand.MethodSend, sendParams(p.session, s.id, s.text))
		p.prompts = append(p.prompts, s)
	}
	return p
}

// kill -9 at random moments of a turn with a tool call and a queued prompt:
// nothing acknowledged is lost, nothing runs twice, the history is valid, and
// the next prompt works. R013, R057, R059, R061, R206.
func TestKillAtAnyPoint(t *testing.T) {
	const lanes = 2
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			killing(t, newVictim(t), uint64(lane), times(10, 100), 40*time.Millisecond, func(string) string { return "work" })
		})
	}
}

func killing(t *testing.T, v *victim, seed uint64, points int, spread time.Duration, text func(id string) string) {
	r := rand.New(rand.NewPCG(seed, 9))
	w := v.run()
	hit := map[string]int{}
	for i := range points {
		name := fmt.Sprintf("k%d-%d", seed, i)
		p := begin(v, w, name, text(name+"-p1"), text(name+"-p2"))
		how := ""
		if i%2 == 0 {
			after := time.Duration(r.Int64N(int64(spread)))
			how = fmt.Sprintf("%v after sending", after)
			time.AfterFunc(after, func() { _ = v.cmd.Process.Kill() })
		} else {
			n := r.IntN(24)
			how = fmt.Sprintf("at update %d", n)
			seen := 0
			w.find(0, func(m message) bool {
				if m.Method == "session/update" && sessionOf(m) == p.session {
					seen++
				}
				return seen > n || tagOf(m) == gladhand.TagTurnEnd && strings.Contains(string(m.Params), p.prompts[1].id)
			})
			_ = v.cmd.Process.Kill()
		}
		v.wait()
		p.died(w)
		if again := r.IntN(4); again == 0 { // and the one that recovers dies too
			v.start()
			after := time.Duration(r.Int64N(int64(4 * spread)))
			how += fmt.Sprintf(", and %v into the restart", after)
			time.AfterFunc(after, func() { _ = v.cmd.Process.Kill() })
			v.wait()
		}
		w = v.run()
		p.check(w)
		if t.Failed() {
			t.Fatalf("point %d: killed %s", i, how)
		}
		for n, s := range p.prompts[:2] {
			hit[fmt.Sprintf("p%d %s, acknowledged %v", n+1, s.final.State, s.receipt != nil)]++
		}
	}
	t.Logf("what %d kills met: %v", points, hit)
	if hit["p1 interrupted, acknowledged true"] == 0 {
		t.Error("no kill met a running turn")
	}
}

// The moments that matter, exactly: the daemon dies at each step of a turn, in
// the agent's goroutine. R206.
func TestKillAtEachStep(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	w := v.run()
	for _, step := range steps {
		p := begin(v, w, "s-"+step, "work, and die at "+step+".", "work")
		v.wait()
		p.died(w)
		w = v.run()
		p1, p2 := p.prompts[0], p.prompts[1]
		if !v.every(func() bool { return v.effects(p2.id) == 1 }) {
			t.Fatalf("%s: the queue does not go on by itself", step)
		}
		p.check(w)
		if p1.final.State != gladhand.PromptInterrupted || p1.receipt == nil {
			t.Errorf("%s: the first prompt is %s, acknowledged as %v", step, p1.final.State, p1.receipt)
		}
		if p2.final.State != gladhand.PromptDone || v.effects(p2.id) != 1 {
			t.Errorf("%s: the queued prompt is %s, with %d effects", step, p2.final.State, v.effects(p2.id))
		}
		want := 0
		if step == "effect" || step == "completed" || step == "end" {
			want = 1
		}
		if got := v.effects(p1.id); got != want {
			t.Errorf("%s: %d effects", step, got)
		}
		if t.Failed() {
			t.Fatalf("killed at %s", step)
		}
	}
}

// Text is shown before it is stored. Who has seen some that the log then lost gets
// nothing twice and misses nothing: no number means two things. R013.
func TestKillWithTextOnTheScreen(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	w := v.run()
	lost := 0
	for i := range times(3, 40) {
		p := begin(v, w, fmt.Sprint("g", i), "hold", "work")
		w.find(0, func(m message) bool {
			return strings.Contains(string(m.Params), "for ever.") && sessionOf(m) == p.session
		})
		_ = v.cmd.Process.Kill()
		v.wait()
		p.died(w)
		w = v.run()
		p.check(w)
		told := false
		for _, m := range w.all() {
			if tagOf(m) == gladhand.TagInterrupted {
				told = true
				if metaOf(t, m).To-p.cursor < gladhand.SeqJump {
					lost++ // the log ended before the client's cursor
				}
			}
		}
		if !told {
			t.Error("who comes back is not told of the interruption")
		}
		if t.Failed() {
			t.Fatalf("point %d", i)
		}
	}
	if lost == 0 {
		t.Error("no kill met text that was shown and not stored")
	}
}
