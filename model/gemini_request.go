package model

import (
	"encoding/json"
	"strings"

	"gladhand"
)

// The request of streamGenerateContent.
type (
	geminiRequest struct {
		System   *geminiContent  `json:"systemInstruction,omitempty"`
		Contents []geminiContent `json:"contents"`
		Tools    []geminiTools   `json:"tools,omitempty"`
		Config   geminiConfig    `json:"generationConfig,omitzero"`
	}
	geminiContent struct {
		Role  string       `json:"role,omitempty"`
		Parts []geminiPart `json:"parts"`
	}
	geminiTools struct {
		Functions []geminiFunction `json:"functionDeclarations"`
	}
	geminiFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
	}
	geminiConfig struct {
		Output   int             `json:"maxOutputTokens,omitempty"`
		Thinking *geminiThinking `json:"thinkingConfig,omitempty"`
	}
	geminiThinking struct {
		Include bool   `json:"includeThoughts,omitempty"`
		Level   string `json:"thinkingLevel,omitempty"`
		Budget  *int   `json:"thinkingBudget,omitempty"`
	}
)

// geminiPart is a part of a request and of a reply. One of Text, Image, Call and
// Result is set.
type geminiPart struct {
	Text      *string       `json:"text,omitempty"`
	Thought   bool          `json:"thought,omitempty"`
	Signature string        `json:"thoughtSignature,omitempty"`
	Image     *geminiImage  `json:"inlineData,omitempty"`
	Call      *geminiCall   `json:"functionCall,omitempty"`
	Result    *geminiResult `json:"functionResponse,omitempty"`
}

type geminiImage struct {
	MIME string `json:"mimeType"`
	Data []byte `json:"data"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiResult struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

// geminiState is what a thought or a call keeps for the provider: the signature
// that came with it, and the id that the provider gave the call, if any.
type geminiState struct {
	Signature string `json:"thoughtSignature,omitempty"`
	ID        string `json:"callId,omitempty"`
}

// begins stands before a conversation that begins with the model's own words.
const begins = "(The conversation begins here.)"

// noSignature stands for the signature of a call that another model made: the
// third generation refuses a call of the running turn without one, and documents
// this as the way round.
const noSignature = "skip_thought_signature_validator"

func geminiText(s string) geminiPart { return geminiPart{Text: &s} }

// newGeminiRequest turns a request around. Contents alternate between user and
// model and begin with user; results stand right behind their calls.
func newGeminiRequest(name string, limits Limits, r Request) geminiRequest {
	g := geminiRequest{}
	if !blank(r.System) {
		g.System = &geminiContent{Parts: []geminiPart{geminiText(r.System)}}
	}
	ids := map[string]string{} // ours → theirs
	var last gladhand.TurnID
	if n := len(r.Messages); n > 0 {
		last = r.Messages[n-1].Turn
	}
	for _, m := range r.Messages {
		role, parts := "user", []geminiPart(nil)
		switch m.Role {
		case Assistant:
			role, parts = "model", geminiReply(m, ids, geminiStrict(name) && m.Turn == last)
		case ToolRole:
			parts = geminiResults(m, ids, limits.Images)
		default:
			parts = geminiPrompt(m, limits.Images)
		}
		g.add(role, parts)
	}
	if n := len(g.Contents); n == 0 || g.Contents[n-1].Role == "model" {
		g.add("user", []geminiPart{geminiText(goOn)})
	}
	if len(r.Tools) > 0 {
		t := geminiTools{}
		for _, tool := range r.Tools {
			t.Functions = append(t.Functions, geminiFunction{wireName(tool.Name), tool.Description, geminiSchema(tool.Schema)})
		}
		g.Tools = []geminiTools{t}
	}
	g.Config = geminiConfig{Output: limits.output(r), Thinking: geminiThinks(name, limits, r.Effort)}
	return g
}

// add appends parts, to the last content when that has the same role.
func (g *geminiRequest) add(role string, parts []geminiPart) {
	if len(parts) == 0 {
		return
	}
	if n := len(g.Contents); n > 0 && g.Contents[n-1].Role == role {
		g.Contents[n-1].Parts = append(g.Contents[n-1].Parts, parts...)
		return
	}
	if len(g.Contents) == 0 && role == "model" {
		g.Contents = append(g.Contents, geminiContent{"user", []geminiPart{geminiText(begins)}})
	}
	g.Contents = append(g.Contents, geminiContent{role, parts})
}

func geminiPrompt(m Message, sees bool) []geminiPart {
	var parts []geminiPart
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			parts = append(parts, geminiPicture(*p.Image, sees))
		case !blank(p.Text):
			parts = append(parts, geminiText(p.Text))
		}
	}
	if len(parts) == 0 {
		parts = []geminiPart{geminiText(noText)}
	}
	return parts
}

// geminiPicture is an image, or in words that one is there.
func geminiPicture(i Image, sees bool) geminiPart {
	if !sees || i.MIME == "image/gif" { // which it does not take
		return geminiText(i.words())
	}
	return geminiPart{Image: &geminiImage{i.MIME, i.Data}}
}

// geminiReply is what the model said before. Its thoughts go back only as far as
// they are signed.
func geminiReply(m Message, ids map[string]string, strict bool) []geminiPart {
	var parts []geminiPart
	first := true
	for _, p := range m.Parts {
		switch {
		case !blank(p.Text):
			parts = append(parts, geminiText(p.Text))
		case p.Thought != nil:
			if s := geminiStateOf(p.Thought.State); s.Signature != "" {
				part := geminiText("")
				part.Signature = s.Signature
				parts = append(parts, part)
			}
		case p.Call != nil:
			s := geminiStateOf(p.Call.State)
			if s.Signature == "" && first && strict {
				s.Signature = noSignature
			}
			first = false
			ids[p.Call.ID] = s.ID
			parts = append(parts, geminiPart{Signature: s.Signature, Call: &geminiCall{s.ID, wireName(p.Call.Name), object(p.Call.Args)}})
		}
	}
	return parts
}

func geminiResults(m Message, ids map[string]string, sees bool) []geminiPart {
	var parts, pictures []geminiPart
	for _, p := range m.Parts {
		if p.Result == nil {
			continue
		}
		key := "output"
		if p.Result.Failed {
			key = "error"
		}
		parts = append(parts, geminiPart{Result: &geminiResult{ids[p.Result.ID], wireName(p.Result.Name), map[string]string{key: p.Result.Text}}})
		for _, i := range p.Result.Images {
			pictures = append(pictures, geminiText("Image in the result of "+p.Result.Name+":"), geminiPicture(i, sees))
		}
	}
	return append(parts, pictures...)
}

func geminiStateOf(raw json.RawMessage) geminiState {
	var s geminiState
	_ = json.Unmarshal(raw, &s) // of another provider: nothing of it is ours
	return s
}

// geminiSchema is a tool's schema; one without properties is left out, since an
// object without any is refused.
func geminiSchema(raw json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	return raw
}

// geminiStrict reports whether a model insists on signatures.
func geminiStrict(name string) bool { return strings.HasPrefix(name, "gemini-3") }

// geminiThinks is how the model should think: in levels since the third
// generation, within a budget of tokens in the second. Models that do not think
// refuse to be asked to.
func geminiThinks(name string, limits Limits, effort string) *geminiThinking {
	second := strings.HasPrefix(name, "gemini-2.5")
	if !second && !geminiStrict(name) && limits.Efforts == nil {
		return nil
	}
	t := &geminiThinking{Include: true}
	if second {
		if n, ok := map[string]int{"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}[effort]; ok {
			t.Budget = &n
			t.Include = n > 0
		}
		return t
	}
	switch effort {
	case "minimal", "low", "medium", "high":
		t.Level = strings.ToUpper(effort)
	}
	return t
}
