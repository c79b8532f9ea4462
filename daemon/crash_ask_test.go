//go:build unix

package daemon

import (
	"fmt"
	"testing"

	"gladhand"
)

// A daemon dies while a question is open, while its answer is on the way, and
// when the answer was acknowledged: the question is over, once; an answer that
// was acknowledged stays who gave it; the effect happens at most once, and never
// without the answer.
func TestKillWithAnOpenAsk(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	w := v.run()
	for i := range times(3, 60) {
		p := begin(v, w, fmt.Sprint("a", i), "ask", "work")
		m, _, ok := w.find(0, func(m message) bool { return tagOf(m) == gladhand.TagAsk && sessionOf(m) == p.session })
		if !ok {
			t.Fatal("no question came")
		}
		ask := updateOf[gladhand.AskUpdate](t, m)
		answer := func(w *wire, option string) string {
			return w.send(gladhand.MethodAnswer, fmt.Sprintf(`{"sessionId":%q,"askId":%q,"optionId":%q}`, p.session, ask.ID, option))
		}
		acked := false
		switch i % 3 {
		case 1: // on the way
			answer(w, "yes")
		case 2:
			r, ok := w.response(answer(w, "yes"))
			if !ok || r.Error != nil {
				t.Fatalf("the answer: %+v", r)
			}
			acked = true
		}
		v.kill()
		p.died(w)
		w = v.run()
		late := v.connect(2)
		r, ok := late.response(answer(late, "no"))
		if !ok || r.Error != nil {
			t.Fatalf("the late answer: %+v", r)
		}
		res := decode[gladhand.AnswerResult](t, r.Result)
		switch {
		case acked && (res.Status != gladhand.AnswerAlready || res.By == nil):
			t.Errorf("the answer was acknowledged, and a late one is told %+v", res)
		case i%3 == 0 && res.Status != gladhand.AnswerExpired:
			t.Errorf("nobody answered, and a late answer is told %+v", res)
		case res.Status == gladhand.AnswerExpired && v.effects(p.prompts[0].id) != 0:
			t.Error("an effect without an answer")
		}
		late.close()
		p.check(w)
		var open gladhand.AsksResult
		w.mustCall(gladhand.MethodAsks, `{}`, &open)
		if len(open.Asks) != 0 {
			t.Errorf("still open: %+v", open.Asks)
		}
		if t.Failed() {
			t.Fatalf("point %d", i)
		}
	}
}
