package daemon

import (
	"fmt"
	"strings"
	"testing"

	"gladhand"
)

// Numbers that show nothing to a stock client are absorbed into its next update:
// each From is the last To and one, for those who were there and those who came late.
func TestStockClientsMissNoNumber(t *testing.T) {
	effects := make(chan string, 10)
	h := newHouse(t, asking(effects))
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	peers := []*peer{ana}
	for version := 1; version <= 2; version++ {
		p := h.connect(version, human("bo"))
		p.load(id, h.cwd)
		peers = append(peers, p)
	}
	for range 2 {
		from := ana.count()
		prompt := ana.send("session/prompt", promptParams(id, "hi"))
		ask, _ := ana.request("session/request_permission", from)
		late := h.connect(1+len(peers)%2, human("di"))
		late.load(id, h.cwd)
		peers = append(peers, late)
		ana.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, ask.ID))
		ana.response(prompt)
	}
	for i, p := range peers {
		p.find("the second call's end", 0, func(m message) bool {
			return strings.Contains(string(m.Params), `"completed"`) && metaOf(t, m).Turn == 2
		})
		at := gladhand.Seq(0)
		for _, m := range p.all() {
			if m.Method != "session/update" {
				continue
			}
			u := metaOf(t, m)
			if u.From != at+1 || u.To < at {
				t.Errorf("peer %d, version %d: %d..%d came behind %d: %s", i, p.version, u.From, u.To, at, m.Params)
			}
			if !u.Part {
				at = u.To
			}
		}
	}
}

// A v2 resume tells the state behind the history and before its response, also
// when nothing runs and when no history was asked for.
func TestResumeTellsTheState(t *testing.T) {
	effects := make(chan string, 10)
	h := newHouse(t, asking(effects))
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	for _, replay := range []string{"", `,"replayFrom":{"type":"start"}`} {
		resume := func(want string) {
			t.Helper()
			p := h.connect(2, human("bo"))
			_, at := p.response(p.send("session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":%q%s}`, id, h.cwd, replay)))
			last := message{}
			for _, m := range p.all()[:at] {
				if m.Method == "session/update" {
					last = m
				}
			}
			if tagOf(last) != "state_update" || !strings.Contains(string(last.Params), `"state":"`+want+`"`) {
				t.Errorf("before the response to a resume with %q came %s, not %s", replay, last.Params, want)
			}
		}
		resume("idle")
		from := ana.count()
		prompt := ana.send("session/prompt", promptParams(id, "hi"))
		ask, _ := ana.request("session/request_permission", from)
		resume("requires_action")
		ana.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, ask.ID))
		ana.response(prompt)
	}
}
