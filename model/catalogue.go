package model

import (
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// The kinds of providers: how they are spoken to.
const (
	KindAnthropic  = "anthropic"
	KindOpenAI     = "openai"      // the responses API
	KindOpenAIChat = "openai-chat" // chat completions, which compatible servers have
	KindGemini     = "gemini"
	KindOllama     = "ollama"
)

// known is a provider that needs no settings but a key.
type known struct {
	id, name, kind, url string
	// keys and urls are the variables that have its key and another address, the
	// first that is set wins.
	keys, urls []string
	// start is the model to begin with.
	start  string
	models []knownModel
}

type knownModel struct {
	id, name string
	limits   Limits
}

// official are the addresses and variables of those that the catalogue has none
// for, and of Ollama, which it has not at all. The order is that in which a
// default is looked for.
var official = []known{
	{id: "anthropic", kind: KindAnthropic, url: "https://api.anthropic.com", keys: []string{"ANTHROPIC_API_KEY"}, urls: []string{"ANTHROPIC_BASE_URL"}},
	{id: "openai", kind: KindOpenAI, url: "https://api.openai.com/v1", keys: []string{"OPENAI_API_KEY"}, urls: []string{"OPENAI_BASE_URL"}},
	{id: "gemini", kind: KindGemini, url: "https://generativelanguage.googleapis.com", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, urls: []string{"GOOGLE_GEMINI_BASE_URL"}},
	{id: "ollama", name: "Ollama", kind: KindOllama, url: "http://127.0.0.1:11434", urls: []string{"OLLAMA_HOST"}},
}

// catalogue is what was known of providers and their models when this binary was
// built: names, windows, prices. Parsing it takes some 10 ms, so it waits until
// somebody asks.
var catalogue = sync.OnceValue(parseCatalogue)

func parseCatalogue() []known {
	list := slices.Clone(official)
	for _, p := range embedded.GetAll() {
		k := known{id: string(p.ID), name: p.Name, kind: KindOpenAIChat, url: p.APIEndpoint, start: p.DefaultLargeModelID}
		if name, ok := strings.CutPrefix(p.APIKey, "$"); ok {
			k.keys = []string{name}
		}
		at := slices.IndexFunc(list, func(o known) bool { return o.id == k.id })
		switch {
		case at >= 0:
			o := list[at]
			k.kind, k.url, k.keys, k.urls = o.kind, o.url, o.keys, o.urls
		case p.Type == catwalk.TypeAnthropic:
			k.kind = KindAnthropic
		case p.Type == catwalk.TypeOpenAI, p.Type == catwalk.TypeOpenAICompat, p.Type == catwalk.TypeOpenRouter, p.Type == catwalk.TypeVercel:
		default: // other ways to sign in: Azure, Bedrock, Vertex
			continue
		}
		if len(k.keys) == 0 || !strings.HasPrefix(k.url, "https://") {
			continue
		}
		for _, m := range p.Models {
			k.models = append(k.models, knownModel{m.ID, m.Name, limitsOf(m)})
		}
		if at >= 0 {
			list[at] = k
		} else {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list[len(official):], func(a, b known) int { return strings.Compare(a.id, b.id) })
	return list
}

func limitsOf(m catwalk.Model) Limits {
	l := Limits{
		Window: int(m.ContextWindow), Output: int(m.DefaultMaxTokens), Images: m.SupportsImages,
		Price: priceOf(m),
	}
	if m.CanReason {
		l.Efforts = m.ReasoningLevels
	}
	return l
}

// priceOf reads the catalogue's two prices of cached tokens, which mean different
// things from provider to provider: what is dearer than plain input is the price
// of writing to the cache, what is cheaper that of reading from it. Nothing that
// fits means no reduction.
func priceOf(m catwalk.Model) Price {
	p := Price{Input: m.CostPer1MIn, Output: m.CostPer1MOut, CacheRead: m.CostPer1MIn, CacheWrite: m.CostPer1MIn}
	if m.CostPer1MInCached > p.Input {
		p.CacheWrite = m.CostPer1MInCached
	}
	for _, c := range []float64{m.CostPer1MInCached, m.CostPer1MOutCached} {
		if c > 0 && c < p.Input {
			p.CacheRead = c
			break
		}
	}
	return p
}

// lookup is the provider of the catalogue called id, or nil.
func lookup(id string) *known {
	list := catalogue()
	if i := slices.IndexFunc(list, func(k known) bool { return k.id == id }); i >= 0 {
		return &list[i]
	}
	return nil
}
