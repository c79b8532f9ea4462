package main

import (
	"encoding/json"
	"testing"

	"gladhand"
)

// What is typed becomes the content of a form, and what does not fit is asked again.
func TestForms(t *testing.T) {
	const one = `{"mode":"form","message":"q","requestedSchema":{"type":"object","properties":{"answer":%s},"required":["answer"]}}`
	for _, c := range []struct{ schema, line, want string }{
		{`{"type":"string"}`, " blue ", `{"answer":"blue"}`},
		{`{"type":"string"}`, "-", ``},
		{`{"type":"string","enum":["red","blue"]}`, "2", `{"answer":"blue"}`},
		{`{"type":"string","enum":["red","2"]}`, "2", `{"answer":"2"}`},
		{`{"type":"string","enum":["red","blue"]}`, "RED", `{"answer":"red"}`},
		{`{"type":"string","enum":["red","blue"]}`, "3", `refused`},
		{`{"type":"string","oneOf":[{"const":"r","title":"Red"}]}`, "red", `{"answer":"r"}`},
		{`{"type":"integer"}`, "12", `{"answer":12}`},
		{`{"type":"integer"}`, "twelve", `refused`},
		{`{"type":"boolean"}`, "true", `{"answer":true}`},
		{`{"type":"boolean"}`, "1", `refused`},
		{`{"type":"string"},"b":{"type":"string"}`, `{"answer":"x","b":"y"}`, `{"answer":"x","b":"y"}`},
		{`{"type":"string"},"b":{"type":"string"}`, `x`, `refused`},
	} {
		raw := []byte(one)
		raw = []byte(string(raw[:len(raw)-len(`%s},"required":["answer"]}}`)]) + c.schema + `},"required":["answer"]}}`)
		f, ok := formOf(gladhand.Ask{Elicitation: json.RawMessage(raw)})
		if !ok {
			t.Fatalf("%s is no form", raw)
		}
		got, ok := f.fill(c.line)
		if text := string(got); !ok && c.want != "refused" || ok && text != c.want {
			t.Errorf("%s with %q gave %q, %v, want %q", c.schema, c.line, text, ok, c.want)
		}
	}
}
