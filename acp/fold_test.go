package acp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gladhand"
	"gladhand/acp"
)

// view is what a client of one version has on its screen after a row of updates.
type view struct {
	version  int
	Messages map[string]string         // tag sort + message id → text
	Last     map[string]string         // the same without "~…" → the id it was last added to
	Tools    map[string]map[string]any // tool call id → its members
	Output   map[string]string         // terminal id → what it printed
	Other    map[string]any            // tag → the last update
}

func newView(version int) *view {
	return &view{version, map[string]string{}, map[string]string{}, map[string]map[string]any{}, map[string]string{}, map[string]any{}}
}

func (v *view) take(t *rapid.T, updates []json.RawMessage) {
	for _, raw := range updates {
		var u map[string]any
		if err := json.Unmarshal(raw, &u); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		v.one(u)
	}
}

func (v *view) one(u map[string]any) {
	tag := u["sessionUpdate"].(string)
	switch tag {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		id, _ := u["messageId"].(string)
		sort := strings.TrimSuffix(tag, "_chunk") + ":"
		v.Messages[sort+id] += blockText(u["content"])
		base, _, _ := strings.Cut(id, "~")
		v.Last[sort+base] = id
	case "user_message", "agent_message", "agent_thought":
		content, has := u["content"]
		if !has {
			return
		}
		text := ""
		blocks, _ := content.([]any)
		for _, b := range blocks {
			text += blockText(b)
		}
		v.Messages[tag+":"+u["messageId"].(string)] = text
	case "tool_call", "tool_call_update":
		v.tool(u)
	case "tool_call_content_chunk":
		tool := v.toolOf(u["toolCallId"].(string))
		old, _ := tool["content"].([]any)
		tool["content"] = append(append([]any{}, old...), u["content"])
	case "terminal_output_chunk":
		b, _ := base64.StdEncoding.DecodeString(u["data"].(string))
		v.Output[u["terminalId"].(string)] += string(b)
	case "state_update":
	default:
		v.Other[tag] = u
	}
}

func (v *view) toolOf(id string) map[string]any {
	if v.Tools[id] == nil {
		v.Tools[id] = map[string]any{}
	}
	return v.Tools[id]
}

func (v *view) tool(u map[string]any) {
	id := u["toolCallId"].(string)
	if meta, _ := u["_meta"].(map[string]any); meta != nil {
		if out, _ := meta["terminal_output"].(map[string]any); out != nil {
			v.Output[out["terminal_id"].(string)] += out["data"].(string)
		}
	}
	if strings.HasPrefix(id, "terminal:") {
		return
	}
	tool := v.toolOf(id)
	for name, val := range u {
		if name == "sessionUpdate" || name == "_meta" || val == nil && v.version == 1 {
			continue
		}
		tool[name] = val
	}
}

func blockText(b any) string {
	block := b.(map[string]any)
	if text, ok := block["text"].(string); ok {
		return text
	}
	return fmt.Sprintf("<%v>", block["type"])
}

// genUpdates makes a row of updates that interleave a few ids.
type genUpdates struct {
	version int
	text    map[string]string // what an upsert may extend, escaped
	id      string            // the last one: runs of one id are what merges
}

func (g *genUpdates) next(t *rapid.T) string {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	text := pick("text", "a", "bc", `\n`, "é", `\u00e9`, "日本語", `\"q\"`, "", strings.Repeat("long ", 4000))
	id := pick("id", "a", "b", "c", g.id, g.id, g.id, g.id)
	g.id = id
	kinds := []string{"chunk", "chunk", "chunk", "block", "tool", "patch", "end", "plan", "usage"}
	if g.version == 2 {
		kinds = append(kinds, "extend", "extend", "same", "replace", "blocks", "clear", "touch", "content", "content", "output", "output")
	}
	sort := map[string]string{"a": "agent_message", "b": "agent_message", "c": "agent_thought"}[id]
	message := func(blocks string) string {
		return fmt.Sprintf(`{"sessionUpdate":%q,"messageId":%q,"content":%s}`, sort, id, blocks)
	}
	switch pick("kind", kinds...) {
	case "chunk":
		g.text[id] += text
		return fmt.Sprintf(`{"sessionUpdate":"%s_chunk","messageId":%q,"content":{"type":"text","text":"%s"}}`, sort, id, text)
	case "block":
		g.text[id] += "\x00"
		return fmt.Sprintf(`{"sessionUpdate":"%s_chunk","messageId":%q,"content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`, sort, id)
	case "tool":
		if g.version == 1 {
			return fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":%q,"title":"T"}`, id)
		}
		return fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"title":"T","status":"in_progress"}`, id)
	case "patch":
		member := pick("member", `"title":"A"`, `"title":"B"`, `"kind":"read"`, `"content":[{"type":"content","content":{"type":"text","text":"x"}}]`, `"title":"A","kind":"edit"`, `"title":"C","_meta":{"a":1}`)
		return fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":%q,%s}`, id, member)
	case "end":
		return fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"completed","content":[]}`, id)
	case "plan":
		if g.version == 1 {
			return fmt.Sprintf(`{"sessionUpdate":"plan","entries":[{"content":%q,"priority":"low","status":"pending"}]}`, id)
		}
		return fmt.Sprintf(`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":%q,"priority":"low","status":"pending"}]}}`, id)
	case "usage":
		return fmt.Sprintf(`{"sessionUpdate":"usage_update","used":%d,"size":9}`, rapid.IntRange(0, 9).Draw(t, "used"))
	case "extend":
		g.text[id] = strings.ReplaceAll(g.text[id], "\x00", "") + text
		return message(fmt.Sprintf(`[{"type":"text","text":"%s"}]`, g.text[id]))
	case "same":
		g.text[id] = strings.ReplaceAll(g.text[id], "\x00", "")
		return message(fmt.Sprintf(`[{"type":"text","text":"%s"}]`, g.text[id]))
	case "replace":
		g.text[id] = text
		return message(fmt.Sprintf(`[{"type":"text","text":"%s"}]`, text))
	case "blocks":
		g.text[id] = "\x00"
		return message(fmt.Sprintf(`[{"type":"text","text":"%s"},{"type":"text","text":"2"}]`, text))
	case "clear":
		g.text[id] = ""
		return message(pick("clear", "null", "[]"))
	case "touch":
		return fmt.Sprintf(`{"sessionUpdate":%q,"messageId":%q}`, sort, id)
	case "content":
		return fmt.Sprintf(`{"sessionUpdate":"tool_call_content_chunk","toolCallId":%q,"content":{"type":"content","content":{"type":"text","text":"%s"}}}`, id, strings.TrimLeft(text, "long "))
	default: // output
		return fmt.Sprintf(`{"sessionUpdate":"terminal_output_chunk","terminalId":%q,"data":%q}`, id, base64.StdEncoding.EncodeToString([]byte(pick("out", "x", "abc", "abcdef\n"))))
	}
}

// log is a session's log as far as this package makes it.
type log struct {
	shown acp.Shown
	opens map[string]gladhand.Seq
	runs  []*acp.Run
	last  gladhand.Seq
}

func (l *log) append(t *rapid.T, e *gladhand.Event, apart bool) {
	l.last++
	e.First, e.Last, e.Opens = l.last, l.last, l.last
	if e.ID != "" {
		if first, ok := l.opens[e.ID]; ok {
			e.Opens = first
		} else {
			l.opens[e.ID] = l.last
		}
	}
	l.shown.Note(e)
	if n := len(l.runs); n > 0 && !apart && l.runs[n-1].Add(e) {
		return
	}
	l.runs = append(l.runs, acp.NewRun(e))
}

// given is an event that a reader got, and the bytes it had then.
type given struct {
	e    *gladhand.Event
	was  string
	lens []uint32
}

type reader struct {
	view   *view
	cursor gladhand.Seq
}

func (r *reader) read(t *rapid.T, l *log, seen *[]given) {
	for _, run := range l.runs {
		if run.Last() <= r.cursor {
			continue
		}
		e := run.After(r.cursor)
		if e.First != r.cursor+1 {
			t.Fatalf("the cursor is at %d, the event begins at %d", r.cursor, e.First)
		}
		whole := run.Event().After(r.cursor)
		if !reflect.DeepEqual(e, whole) {
			t.Fatalf("a part differs from the part of the whole:\n%+v %s\n%+v %s", e, e.Update, whole, whole.Update)
		}
		*seen = append(*seen, given{e, string(e.Update), append([]uint32(nil), e.Lens...)})
		r.view.take(t, acp.Project(e, r.view.version))
		r.cursor = e.Last
	}
}

// Whatever a reader's cuts are and however the log merged, it ends with the view of
// one who saw every update alone; and both versions say the same.
func TestEveryReaderSeesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.IntRange(1, 2).Draw(t, "version")
		g := &genUpdates{version: version, text: map[string]string{}, id: "a"}
		l := &log{opens: map[string]gladhand.Seq{}}
		plain := []*view{newView(1), newView(2)} // saw each update alone
		var readers []*reader
		for range 2 {
			readers = append(readers, &reader{view: newView(1)}, &reader{view: newView(2)})
		}
		var seen []given
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			e, err := acp.Describe(version, json.RawMessage(g.next(t)))
			if err != nil {
				t.Fatal(err)
			}
			l.append(t, e, rapid.IntRange(0, 9).Draw(t, "apart") == 0)
			alone := *e
			for _, v := range plain {
				v.take(t, acp.Project(&alone, v.version))
			}
			for k, r := range readers {
				if rapid.IntRange(0, k+1).Draw(t, fmt.Sprint("read", i)) == 0 {
					r.read(t, l, &seen)
				}
			}
		}
		for _, r := range readers {
			r.read(t, l, &seen)
			if want := plain[r.view.version-1]; !reflect.DeepEqual(r.view, want) {
				t.Fatalf("a reader of v%d has\n%+v\nwant\n%+v", r.view.version, r.view, want)
			}
		}
		for _, s := range seen {
			if string(s.e.Update) != s.was || len(s.lens) > 0 && !reflect.DeepEqual(s.e.Lens, s.lens) {
				t.Fatalf("an event changed after it was given out: %s\nwas %s", s.e.Update, s.was)
			}
		}
		agree(t, plain[0], plain[1])
	})
}

// agree checks that the two versions' views of one log mean the same.
func agree(t *rapid.T, v1, v2 *view) {
	for id, text := range v2.Messages {
		last, shown := v1.Last[id]
		sort, _, _ := strings.Cut(id, ":")
		if text == "" && !shown { // v1 cannot clear a message
			continue
		}
		if got := v1.Messages[sort+":"+last]; got != text && text != "" {
			t.Fatalf("%s is %q on v1 and %q on v2", id, got, text)
		}
	}
	if !reflect.DeepEqual(v1.Output, v2.Output) {
		t.Fatalf("terminals printed %v on v1 and %v on v2", v1.Output, v2.Output)
	}
	for id, two := range v2.Tools {
		one := v1.Tools[id]
		c1, _ := one["content"].([]any)
		c2, _ := two["content"].([]any)
		if len(c1)+len(c2) > 0 && !reflect.DeepEqual(c1, c2) {
			t.Fatalf("content of tool %s is\n%v on v1,\n%v on v2", id, c1, c2)
		}
		if two["title"] != nil && one["title"] != two["title"] {
			t.Fatalf("title of tool %s is %v on v1, %v on v2", id, one["title"], two["title"])
		}
	}
}

// The generator of the property must reach what it is about.
func TestGeneratorReaches(t *testing.T) {
	merged, cut, restarted, extended := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := &genUpdates{version: 2, text: map[string]string{}, id: "a"}
		l := &log{opens: map[string]gladhand.Seq{}}
		for range 40 {
			e, err := acp.Describe(2, json.RawMessage(g.next(t)))
			if err != nil {
				t.Fatal(err)
			}
			l.append(t, e, false)
			if e.Base < 0 {
				restarted++
			}
			if e.Base > 0 {
				extended++
			}
		}
		for _, r := range l.runs {
			if r.Last() > r.First() {
				merged++
				if r.Event().Lens != nil {
					cut++
				}
			}
		}
	})
	if merged == 0 || cut == 0 || restarted == 0 || extended == 0 {
		t.Errorf("merged %d, with lengths %d, restarted %d, extended %d", merged, cut, restarted, extended)
	}
}
