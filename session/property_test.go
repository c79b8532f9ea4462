package session

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

var long = flag.Bool("long", false, "run the long forms of the property and race tests")

func times(short, full int) int {
	if *long {
		return full
	}
	return short
}

// fold is what a client of one version makes of the updates it gets: text by
// message. v1 knows appends alone; a message that replaces another one comes
// under the id of the first with "~" and a number.
type fold struct {
	version int
	text    map[string]string
	states  map[string]string // tool calls and plans: what was set last
	at      gladhand.Seq
}

func newFold(version int) *fold {
	return &fold{version: version, text: map[string]string{}, states: map[string]string{}}
}

func (f *fold) take(t *testing.T, items []Item) {
	t.Helper()
	for _, it := range items {
		if it.From != f.at+1 || it.To < it.From {
			t.Fatalf("v%d: an item covers %d..%d behind %d", f.version, it.From, it.To, f.at)
		}
		f.at = it.To
		if it.Event.Version == 0 {
			continue
		}
		for _, u := range acp.Project(it.Event, f.version) {
			f.update(t, u)
		}
	}
}

func (f *fold) update(t *testing.T, raw json.RawMessage) {
	t.Helper()
	var u struct {
		Tag       string          `json:"sessionUpdate"`
		MessageID string          `json:"messageId"`
		Content   json.RawMessage `json:"content"`
		Tool      string          `json:"toolCallId"`
		Status    string          `json:"status"`
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	type block struct{ Text string }
	switch u.Tag {
	case acp.TagAgentChunk:
		var b block
		if err := json.Unmarshal(u.Content, &b); err != nil {
			t.Fatal(err)
		}
		f.text[u.MessageID] += b.Text
	case acp.TagAgentMessage:
		var bs []block
		if err := json.Unmarshal(u.Content, &bs); err != nil {
			t.Fatal(err)
		}
		f.text[u.MessageID] = ""
		for _, b := range bs {
			f.text[u.MessageID] += b.Text
		}
	case acp.TagToolCall, acp.TagToolCallUpdate:
		f.states[u.Tool] = u.Status
	}
}

func (f *fold) equal(g *fold) bool {
	return f.at == g.at && maps.Equal(f.text, g.text) && maps.Equal(f.states, g.states)
}

// diff says where two folds differ.
func (f *fold) diff(g *fold) string {
	out := fmt.Sprintf("at %d and %d", f.at, g.at)
	for k := range maps.Keys(f.text) {
		if f.text[k] != g.text[k] {
			out += fmt.Sprintf("\n%s: %q\nand %q", k, f.text[k], g.text[k])
		}
	}
	for k := range maps.Keys(g.text) {
		if _, ok := f.text[k]; !ok {
			out += fmt.Sprintf("\nonly the second has %s: %q", k, g.text[k])
		}
	}
	if !maps.Equal(f.states, g.states) {
		out += fmt.Sprintf("\n%v\nand %v", f.states, g.states)
	}
	return out
}

// client is a reader at its own pace, which may die and come back.
type client struct {
	*fold
	c *Cursor
}

func (c *client) poll(t *testing.T, pages int) {
	t.Helper()
	for range pages {
		items, err := c.c.Poll(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			return
		}
		c.take(t, items)
	}
}

// drive appends a random update of one of three interleaved messages, or a tool,
// as an agent of the version does.
func drive(ctx context.Context, r *rand.Rand, t *turn, version int, texts map[string]string, n int) error {
	id := fmt.Sprintf("m%d", r.IntN(3))
	word := fmt.Sprintf("%d-%s ", n, []string{"a", "ü", `"\n`, "日本", "\U0001F600"}[r.IntN(5)])
	switch k := r.IntN(12); {
	case k < 8 || version == acp.V1 && k < 10:
		texts[id] += word
		return t.emit(ctx, version, acp.MessageChunk(id, word))
	case k < 9: // v2: the message as a whole, longer than before
		texts[id] += word
		return t.emit(ctx, acp.V2, message(id, texts[id]))
	case k < 10: // v2: another text
		texts[id] = word
		return t.emit(ctx, acp.V2, message(id, word))
	}
	status := []string{"in_progress", "in_progress", "completed"}[r.IntN(3)]
	return t.emit(ctx, version, acp.ToolUpdate(acp.ToolState{ID: fmt.Sprintf("t%d", r.IntN(3)), Status: status}))
}

func message(id, text string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{
		"sessionUpdate": "agent_message", "messageId": id,
		"content": []map[string]string{{"type": "text", "text": text}},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// Over random logs, every reader sees each number once and in order, whatever it
// does, and what it has at the end equals a replay from the start. R008, R010,
// R012.
func TestEveryReaderEqualsAReplay(t *testing.T) {
	for seed := range uint64(times(12, 100)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			steps := make(chan func(context.Context, *turn) error)
			results := make(chan error)
			b := newBench(t, func(ctx context.Context, gt gladhand.Turn) (gladhand.StopReason, error) {
				for step := range steps {
					results <- step(ctx, gt.(*turn))
				}
				return gladhand.StopEndTurn, nil
			}, Options{})
			s := b.session()
			mustSend(t, s, person("ana"), "", "go")
			var clients []*client
			texts := map[string]string{}
			for n := range 150 + r.IntN(300) {
				steps <- func(ctx context.Context, tn *turn) error { return drive(ctx, r, tn, 1+int(seed%2), texts, n) }
				if err := <-results; err != nil {
					t.Fatal(err)
				}
				if r.IntN(20) == 0 {
					clients = append(clients, &client{newFold(1 + r.IntN(2)), s.cursor(0)})
				}
				for _, c := range clients {
					switch r.IntN(12) {
					case 0: // dies, and comes back at its cursor
						c.c = s.cursor(c.at)
					case 1, 2, 3:
						c.poll(t, 1)
					case 4:
						c.poll(t, 100)
					}
				}
				if r.IntN(15) == 0 {
					s.mu.Lock()
					s.log.tail.max = r.IntN(4096) // readers meet the store at any point
					s.log.flush()
					s.log.trim()
					s.log.unlock()
				}
			}
			watch := follow(t, s, person("bo"), 0) // its coming is an event too, so before the end
			close(steps)
			watch.untilEnd(t, 1)
			watch.cancel()
			replays := map[int]*client{}
			for v := 1; v <= 2; v++ {
				replays[v] = &client{newFold(v), s.cursor(0)}
				replays[v].poll(t, 1000)
			}
			for id, want := range texts {
				if got := replays[2].text[id]; got != want {
					t.Fatalf("%s is %q, should be %q", id, got, want)
				}
			}
			for _, c := range clients {
				c.poll(t, 1000)
				if !c.equal(replays[c.version].fold) {
					t.Fatalf("v%d: a reader and a replay: %s", c.version, c.diff(replays[c.version].fold))
				}
			}
		})
	}
}

// A crash between showing and committing: numbers never mean two things, v2
// readers who come back equal a replay, and every number is covered once. R013.
func TestCrashBetweenShowingAndCommitting(t *testing.T) {
	for seed := range uint64(times(15, 100)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			steps := make(chan func(context.Context, *turn) error)
			results := make(chan error)
			left := make(chan struct{})
			b := newBench(t, func(ctx context.Context, gt gladhand.Turn) (gladhand.StopReason, error) {
				for step := range steps {
					results <- step(ctx, gt.(*turn))
				}
				<-left
				return gladhand.StopEndTurn, nil
			}, Options{})
			s := b.session()
			mustSend(t, s, person("ana"), "p1", "go")
			texts := map[string]string{}
			clients := []*client{{newFold(1), s.cursor(0)}, {newFold(2), s.cursor(0)}, {newFold(2), s.cursor(0)}}
			for n := range r.IntN(120) {
				steps <- func(ctx context.Context, tn *turn) error { return drive(ctx, r, tn, 1+int(seed%2), texts, n) }
				if err := <-results; err != nil {
					t.Fatal(err)
				}
				clients[r.IntN(3)].poll(t, 1)
			}
			mustSend(t, s, person("ana"), "p2", "next")
			clients[1].poll(t, 1000)
			crash(t, b, s)
			host := b.host
			b.agent = hello
			again, err := host.Open(context.Background(), s.ID())
			if err != nil {
				t.Fatal(err)
			}
			watch := follow(t, again, person("bo"), 0)
			if end := watch.untilEnd(t, 1); end.StopReason != gladhand.StopError {
				t.Fatalf("the interrupted turn ended as %+v", end)
			}
			if end := watch.untilEnd(t, 2); end.Prompts[0] != "p2" {
				t.Fatalf("the waiting prompt did not run: %+v", end)
			}
			rec, err := again.Receipt(context.Background(), "p1")
			if err != nil || rec.State != gladhand.PromptInterrupted {
				t.Fatalf("the interrupted prompt: %+v, %v", rec, err)
			}
			watch.cancel()
			replay := &client{newFold(2), again.cursor(0)}
			replay.poll(t, 1000)
			for i, c := range clients {
				c.c = again.cursor(c.at)
				c.poll(t, 1000)
				if c.at != replay.at {
					t.Fatalf("reader %d ends at %d, a replay at %d", i, c.at, replay.at)
				}
				if c.version == 2 && !c.equal(replay.fold) {
					t.Fatalf("reader %d and a replay: %s", i, c.diff(replay.fold))
				}
			}
			close(steps)
			close(left)
		})
	}
}

// crash makes a session's memory worthless, as a killed daemon's is: nothing of
// it reaches the store any more.
func crash(t *testing.T, b *bench, s *Session) {
	t.Helper()
	void, err := store.Open(context.Background(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { void.Close() })
	b.host.forget(s)
	b.host = NewHost(b.store, b.opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.store, s.store = void, void
	if s.log.timer != nil {
		s.log.timer.Stop()
	}
}
