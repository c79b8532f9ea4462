package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"gladhand"
)

// Provider is how a provider of models is reached. One that is known by its name
// (anthropic, openai, gemini, ollama, openrouter, …) needs only what differs.
type Provider struct {
	// Kind is how it is spoken to: "anthropic", "openai" (responses),
	// "openai-chat" (chat completions, what compatible servers have), "gemini" or
	// "ollama". Empty is the known one's, else openai-chat.
	Kind string `json:"kind,omitempty"`
	// URL is the base address, up to and with "/v1" where the API has that.
	URL gladhand.Secret `json:"url,omitzero"`
	// Key is a key, or where one is: "env:NAME", "keyring:" (under the provider's
	// name) or "keyring:NAME". Empty looks in the usual variable and the keyring.
	Key     gladhand.Secret            `json:"key,omitzero"`
	Headers map[string]gladhand.Secret `json:"headers,omitempty"`
	// Models are those it has, when it cannot be asked for them or says too little.
	Models   []ProviderModel `json:"models,omitempty"`
	Disabled bool            `json:"disabled,omitempty"`
}

// ProviderModel is what is known of a model. Zero is unknown.
type ProviderModel struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Window  int      `json:"window,omitempty"` // tokens, request and reply together
	Output  int      `json:"output,omitempty"` // tokens of a reply
	Images  bool     `json:"images,omitempty"` // sees images
	Efforts []string `json:"efforts,omitempty"`
	Price   Price    `json:"price,omitzero"`
}

// Price is US dollars for a million tokens.
type Price struct {
	Input      float64 `json:"input,omitempty"`
	Output     float64 `json:"output,omitempty"`
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
}

// MCPServer is how an MCP server is started or reached: by Command or by URL,
// exactly one of them.
type MCPServer struct {
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	// Env is added to a clean environment. Values may be references like a
	// provider's key.
	Env map[string]gladhand.Secret `json:"env,omitempty"`

	URL     gladhand.Secret            `json:"url,omitzero"`
	Headers map[string]gladhand.Secret `json:"headers,omitempty"`

	// Timeout of one call; 0 is the default.
	Timeout  time.Duration `json:"-"`
	Disabled bool          `json:"disabled,omitempty"`
}

// MarshalJSON writes s as the settings file has it, secrets masked.
func (s MCPServer) MarshalJSON() ([]byte, error) {
	type plain MCPServer
	in := struct {
		plain
		Timeout string `json:"timeout,omitempty"`
	}{plain: plain(s)}
	if s.Timeout > 0 {
		in.Timeout = short(s.Timeout)
	}
	return compact(in)
}

// The most there may be.
const (
	maxProviders = 64
	maxServers   = 64
	maxModels    = 1000
	maxTokens    = 100_000_000
)

// Kinds are the kinds of providers.
func Kinds() []string { return []string{"anthropic", "openai", "openai-chat", "gemini", "ollama"} }

// named is a setting of things with names: providers, mcp.
type named[T any] struct {
	p    *map[string]T
	what string // one of them
	most int
	read func(part) (T, error)
}

func (v named[T]) set(raw []byte) error {
	all, err := whole(raw)
	if err != nil {
		return err
	}
	m := map[string]T{}
	err = all.each(v.what, isName, v.most, func(name string, p part) error {
		one, err := v.read(p)
		m[name] = one
		return err
	})
	if err != nil {
		return err
	}
	if len(m) == 0 {
		m = nil
	}
	*v.p = m
	return nil
}

func (v named[T]) json() json.RawMessage { return object(*v.p) }

func readProvider(p part) (Provider, error) {
	var o Provider
	err := p.fields(map[string]func(part) error{
		"kind":     intoWord(&o.Kind, Kinds()...),
		"url":      intoAddress(&o.URL, false),
		"key":      intoSecret(&o.Key),
		"headers":  intoSecrets(&o.Headers, "header", header),
		"disabled": intoTruth(&o.Disabled),
		"models": func(p part) error {
			return p.elements("models", maxModels, func(e part) error {
				m, err := readModel(e)
				if err == nil && slices.ContainsFunc(o.Models, func(other ProviderModel) bool { return other.ID == m.ID }) {
					return &misfit{e.v.StartOffset, e.path, "is a model that is there already"}
				}
				o.Models = append(o.Models, m)
				return err
			})
		},
	})
	return o, err
}

// readModel reads a model, or only its id.
func readModel(p part) (ProviderModel, error) {
	var m ProviderModel
	if p.literal(&m.ID) {
		return m, checkID(p, m.ID)
	}
	err := p.fields(map[string]func(part) error{
		"id":      intoText(&m.ID, 200),
		"name":    intoText(&m.Name, 200),
		"window":  intoNumber(&m.Window, maxTokens),
		"output":  intoNumber(&m.Output, maxTokens),
		"images":  intoTruth(&m.Images),
		"efforts": intoTexts(&m.Efforts, 10, 40),
		"price": func(p part) error {
			return p.fields(map[string]func(part) error{
				"input":       intoDollars(&m.Price.Input),
				"output":      intoDollars(&m.Price.Output),
				"cache_read":  intoDollars(&m.Price.CacheRead),
				"cache_write": intoDollars(&m.Price.CacheWrite),
			})
		},
	})
	if err != nil {
		return m, err
	}
	return m, checkID(p, m.ID)
}

func checkID(p part, id string) error {
	if id == "" || len(id) > 200 || strings.ContainsFunc(id, isSpaceOrControl) {
		return p.must(`a model: its id as a string, or an object such as {"id": "qwen3", "window": 32768}`)
	}
	return nil
}

func isSpaceOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

func readServer(p part) (MCPServer, error) {
	var o MCPServer
	err := p.fields(map[string]func(part) error{
		"command":  intoText(&o.Command, 4096),
		"args":     intoTexts(&o.Args, 200, 8192),
		"env":      intoSecrets(&o.Env, "variable", variable),
		"url":      intoAddress(&o.URL, true),
		"headers":  intoSecrets(&o.Headers, "header", header),
		"timeout":  intoTime(&o.Timeout, time.Second, time.Hour),
		"disabled": intoTruth(&o.Disabled),
	})
	switch {
	case err != nil:
		return o, err
	case (o.Command == "") == o.URL.Empty():
		return o, &misfit{p.v.StartOffset, p.path, "must have exactly one of command and url"}
	case o.Command == "" && (o.Args != nil || o.Env != nil):
		return o, &misfit{p.v.StartOffset, p.path, "has a url; args and env belong to a command"}
	case o.Command != "" && o.Headers != nil:
		return o, &misfit{p.v.StartOffset, p.path, "has a command; headers belong to a url"}
	}
	return o, nil
}

// memberNames are the members that an entry of an object setting may have.
func memberNames(v value) []string {
	var t reflect.Type
	names := []string(nil)
	switch v.(type) {
	case named[Provider]:
		t = reflect.TypeFor[Provider]()
	case named[MCPServer]:
		t, names = reflect.TypeFor[MCPServer](), []string{"timeout"}
	default:
		return nil
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func object[V any](m map[string]V) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage("{}")
	}
	raw, err := compact(m)
	if err != nil {
		return json.RawMessage("{}") // cannot be: strings, numbers, and secrets' masks
	}
	return raw
}

// compact encodes v on one line, without escapes that only HTML needs.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
