package rpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name string `json:"name"`
	Deep *inner `json:"deep,omitempty"`
}

type embedded struct {
	Shared string `json:"shared"`
}

type params struct {
	embedded
	SessionID string            `json:"sessionId"`
	After     *int64            `json:"after,omitempty"`
	Limit     uint              `json:"limit"`
	Flag      bool              `json:"flag"`
	List      []inner           `json:"list"`
	Map       map[string]inner  `json:"map"`
	Raw       json.RawMessage   `json:"raw"`
	At        time.Time         `json:"at"`
	Wait      time.Duration     `json:"wait"`
	Any       any               `json:"any"`
	Words     map[string]string `json:"words"`
	Hidden    string            `json:"-"`
	//lint:ignore U1000 it is there to be passed over
}

func TestDecodeParams(t *testing.T) {
	for _, tc := range []struct{ name, raw, want string }{ // want: a piece of the message; "" passes
		{"known", `{"sessionId":"s","after":-1,"limit":3,"flag":true,"shared":"x","wait":5}`, ""},
		{"unknown", `{"sessionId":"s","_meta":{"sessionid":1},"x":[{"SessionId":1}]}`, ""},
		{"empty", `{}`, ""},
		{"absent", ``, ""},
		{"null member", `{"after":null,"list":null}`, ""},
		{"raw is not looked into", `{"raw":{"Name":1,"name":2},"x":1}`, ""},
		{"map keys are data", `{"words":{"Name":"a","name":"b"},"x":1}`, ""},
		{"any is data", `{"any":{"A":1,"a":2},"x":1}`, ""},
		{"case", `{"SessionId":"s"}`, `SessionId must be spelled "sessionId"`},
		{"case beside the right one", `{"sessionId":"s","SESSIONID":"t"}`, `"sessionId"`},
		{"case embedded", `{"Shared":"s"}`, `"shared"`},
		{"case deep", `{"list":[{"name":"a"},{"deep":{"Name":"b"}}]}`, `list.deep.Name must be spelled "name"`},
		{"case in a map's value", `{"map":{"k":{"NAME":"b"}}}`, `map.k.NAME`},
		{"case of a field without use", `{"sessionId":"s","hidden":1,"Hidden":1}`, ""},
		{"twice", `{"sessionId":"s","sessionId":"t"}`, "a name twice"},
		{"twice in unknown", `{"x":{"a":1,"a":2}}`, "a name twice"},
		{"bad UTF-8", "{\"sessionId\":\"\xff\"}", "not JSON"},
		{"string for a number", `{"limit":"3"}`, "limit must be a whole number"},
		{"fraction", `{"limit":1.5}`, "limit must be a whole number"},
		{"negative", `{"limit":-1}`, "not negative"},
		{"number for a string", `{"sessionId":7,"x":1}`, "sessionId must be a string"},
		{"object for an array", `{"list":{}}`, "list must be an array"},
		{"deep type", `{"list":[{"name":"a"},{"name":[]}]}`, "list.1.name must be a string"},
		{"bad time", `{"at":"yesterday"}`, "at cannot be used"},
		{"array", `[]`, "must be an object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var p params
			err := DecodeParams(json.RawMessage(tc.raw), &p)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(tc.raw, `"sessionId":"s"`) && p.SessionID != "s" {
					t.Errorf("sessionId %q", p.SessionID)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeInvalidParams || string(e.Data) != `{"reason":"invalid"}` {
				t.Fatalf("err %v", err)
			}
			if !strings.Contains(e.Message, tc.want) {
				t.Errorf("message %q, want %q in it", e.Message, tc.want)
			}
			if p.SessionID != "" || p.List != nil {
				t.Errorf("v was changed: %+v", p)
			}
		})
	}
}

// What was set before stays where the parameters say nothing.
func TestDecodeParamsDefaults(t *testing.T) {
	for _, raw := range []string{`{"sessionId":"s"}`, `{"sessionId":"s","unknown":1}`} {
		p := params{Limit: 200, SessionID: "default"}
		if err := DecodeParams(json.RawMessage(raw), &p); err != nil || p.Limit != 200 || p.SessionID != "s" {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

// A type written by encoding/json is read back the same.
func TestDecodeOwnTypes(t *testing.T) {
	after := int64(-1)
	want := params{
		SessionID: "s<>&\u2028", After: &after, Limit: 3, Flag: true, List: []inner{{"a", &inner{"b", nil}}},
		Map: map[string]inner{"k": {"v", nil}}, Raw: json.RawMessage(`{"x":1}`), At: time.Unix(1, 2).UTC(), Wait: time.Second,
		Any: "any", Words: map[string]string{"a": "b"}, embedded: embedded{"e"},
	}
	raw, err := encode(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	var got params
	if err := DecodeParams(raw, &got); err != nil {
		t.Fatal(err)
	}
	again, err := encode(nil, got)
	if err != nil || string(again) != string(raw) || got.Wait != time.Second {
		t.Errorf("%s\n%s\n%v", raw, again, err)
	}
}
