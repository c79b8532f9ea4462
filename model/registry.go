package model

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"gladhand"
)

// Registry knows the models there are: from the settings, from keys in the
// environment, a local Ollama, and [Offline]. It is safe for concurrent use.
//
// Making one costs nothing: the catalogue is parsed, servers are asked and the
// keyring is opened when somebody first wants to know. Nothing waits for that but
// [Registry.Refresh] and the first reply of a model.
type Registry struct {
	mu     sync.Mutex // guards what follows
	o      RegistryOptions
	epoch  int // counts Configure
	waited int // the epoch that Default has waited in
	looks  map[string]*look
	opened map[string]Model
	http   func() (*http.Client, error)
	seen   time.Time // when servers were asked last
	// asking is closed when the look that goes on in the background is done; nil:
	// none goes on.
	asking chan struct{}
}

// RegistryOptions say where to look for models.
type RegistryOptions struct {
	// Model is the setting: what new sessions use; empty is the best that is ready.
	Model string
	// Providers are the settings'; those known anyway need no entry.
	Providers map[string]ProviderOptions
	Network   Network
	// Env is the environment; nil is the process' own.
	Env func(string) string
	// Keyring is nil for the system's.
	Keyring Keyring
	// Offline is the model inside the binary, nil for one without a pace.
	Offline Model
}

// ProviderOptions are a provider's settings; empty fields are what is known of it.
type ProviderOptions struct {
	Kind     string
	URL      string
	Key      gladhand.Secret // or a reference, see [Keys.Resolve]
	Headers  map[string]gladhand.Secret
	Models   []ModelOptions
	Disabled bool
}

// ModelOptions is a model that the settings name.
type ModelOptions struct {
	ID, Name string
	Limits   Limits
}

// Info is a model that one can choose, or cannot and why.
type Info struct {
	// ID is "provider/model", or "offline".
	ID, Name string
	// Provider and Model are the two parts of the id.
	Provider, Model string
	Ready           bool
	// Why it is not ready, and what to do about it, both for people.
	Why, Mend string
	Limits    Limits
	// NoTools says that it cannot call tools: it can talk and nothing else.
	NoTools bool
	// Start says that it is the one to begin with, of its provider.
	Start bool
}

// ProviderInfo is a provider, and whether its models can be used.
type ProviderInfo struct {
	ID, Name string
	// Kind is how it is spoken to, URL where.
	Kind, URL string
	// Configured says that the settings name it.
	Configured bool
	Ready      bool
	Why, Mend  string
	// Key says where its key is from: a variable's name, "the settings", "the
	// keyring"; "" for none.
	Key string
	// Variables are those that may have its key.
	Variables []string
	Models    []Info
	// unasked says that its server is to be asked for its models, and was not yet.
	unasked bool
}

// OfflineID is the id of the model inside the binary.
const OfflineID = "offline"

// NewRegistry makes a registry; see [Registry.Configure].
func NewRegistry(o RegistryOptions) *Registry {
	r := &Registry{}
	r.Configure(o)
	return r
}

// Configure replaces the options, after a change of the settings for instance.
// Models that were opened before go on as they are.
func (r *Registry) Configure(o RegistryOptions) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Offline == nil {
		o.Offline = Offline{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.o
	r.o = o
	r.epoch++
	r.opened, r.http = map[string]Model{}, sync.OnceValues(func() (*http.Client, error) { return NewHTTPClient(o.Network) })
	if r.looks == nil || !o.Network.same(before.Network) {
		r.looks, r.seen = map[string]*look{}, time.Time{}
		return
	}
	for _, list := range []map[string]ProviderOptions{o.Providers, before.Providers} {
		for id := range list {
			if !sameProvider(o, before, id) {
				delete(r.looks, id)
				r.seen = time.Time{}
			}
		}
	}
}

// sameProvider reports whether both options say the same of a provider.
func sameProvider(a, b RegistryOptions, id string) bool {
	return a.Network.same(b.Network) && reflect.DeepEqual(a.Providers[id], b.Providers[id])
}

func (n Network) same(o Network) bool {
	return n.Proxy == o.Proxy && n.CA == o.CA && slices.Equal(n.NoProxy, o.NoProxy)
}

// options are those in force, and their epoch.
func (r *Registry) options() (RegistryOptions, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.o, r.epoch
}

func (r *Registry) keys() Keys {
	o, _ := r.options()
	return Keys{Env: o.Env, Keyring: o.Keyring}
}

// Models are the models of providers that are configured, have a key or are
// usual, ready ones first. It does not wait: what is not known yet comes with a
// later call.
func (r *Registry) Models() []Info {
	var ready, others []Info
	for _, p := range r.Providers(false) {
		for _, m := range p.Models {
			if m.Ready {
				ready = append(ready, m)
			} else {
				others = append(others, m)
			}
		}
	}
	return append(ready, others...)
}

// Providers are those that are configured, have a key or are usual; with all,
// those of the catalogue without a key too. The one whose models a default is
// looked for first comes first, the model inside the binary last. It does not
// wait, see [Registry.Models].
func (r *Registry) Providers(all bool) []ProviderInfo {
	r.look()
	var list []ProviderInfo
	for _, s := range r.sources() {
		if all || s.usual || s.configured || s.key.Reveal() != "" || s.moved {
			list = append(list, r.describe(s))
		}
	}
	return append(list, ProviderInfo{ID: OfflineID, Name: "Offline", Kind: OfflineID, Ready: true, Models: []Info{offlineInfo}})
}

var offlineInfo = Info{ID: OfflineID, Name: "Offline", Provider: OfflineID, Model: OfflineID, Ready: true, Start: true}

// describe is a source as people see it.
func (r *Registry) describe(s *source) ProviderInfo {
	r.mu.Lock()
	l := r.looks[s.id]
	r.mu.Unlock()
	p := ProviderInfo{ID: s.id, Name: s.name, Kind: s.kind, URL: s.url, Configured: s.configured, Key: s.keyFrom, Variables: s.variables}
	p.Why, p.Mend = s.trouble(l)
	p.unasked = s.asks && s.why == "" && l == nil
	p.Ready = p.Why == ""
	list := s.models
	if l != nil {
		list = merge(list, l.models)
	}
	start := s.start
	if !slices.ContainsFunc(list, func(m knownModel) bool { return m.id == start }) {
		start = startOf(list, l)
	}
	for _, m := range list {
		in := Info{
			ID: s.id + "/" + m.id, Name: cmp.Or(m.name, m.id), Provider: s.id, Model: m.id,
			Ready: p.Ready, Why: p.Why, Mend: p.Mend, Limits: m.limits, NoTools: l != nil && l.noTools[m.id], Start: m.id == start,
		}
		p.Models = append(p.Models, in)
	}
	if p.Ready && len(p.Models) == 0 && (l != nil || !s.asks) {
		p.Ready, p.Why, p.Mend = false, "it has no models", "Name them in the setting providers."+s.id+".models"
		if s.kind == KindOllama {
			p.Why, p.Mend = "no model is installed", "Get one: ollama pull qwen3"
		}
	}
	return p
}

// startOf is the first model that can call tools.
func startOf(list []knownModel, l *look) string {
	for _, m := range list {
		if l == nil || !l.noTools[m.id] {
			return m.id
		}
	}
	return ""
}

// merge adds to what is known what a server says it has.
func merge(known, found []knownModel) []knownModel {
	list := slices.Clone(known)
	for _, f := range found {
		i := slices.IndexFunc(list, func(k knownModel) bool { return k.id == f.id })
		if i < 0 {
			list = append(list, f)
			continue
		}
		list[i].limits = overlay(f.limits, list[i].limits)
	}
	return list
}

// overlay is base, with what over knows instead.
func overlay(base, over Limits) Limits {
	base.Window = cmp.Or(over.Window, base.Window)
	base.Output = cmp.Or(over.Output, base.Output)
	base.Images = base.Images || over.Images
	if over.Efforts != nil {
		base.Efforts = over.Efforts
	}
	base.Price = cmp.Or(over.Price, base.Price)
	return base
}

// defaultPatience is how long Default waits for servers that were not asked yet.
const defaultPatience = 300 * time.Millisecond

// Default is the model that new sessions use: GLADHAND_MODEL, else the setting,
// else the first ready provider's model to begin with, else "offline".
//
// It may wait, 300 ms at most and once after a start or a change of the options:
// when it hangs on a server that was not asked yet, such as a local Ollama.
func (r *Registry) Default() string {
	o, _ := r.options()
	if name := cmp.Or(o.Env("GLADHAND_MODEL"), o.Model); name != "" {
		if id, err := r.Find(name); err == nil {
			return id
		}
		return name
	}
	id, sure := r.best()
	if sure {
		return id
	}
	r.mu.Lock()
	waited := r.waited == r.epoch
	r.waited = r.epoch
	r.mu.Unlock()
	if !waited {
		ctx, cancel := context.WithTimeout(context.Background(), defaultPatience)
		defer cancel()
		r.Warm(ctx)
		id, _ = r.best()
	}
	return id
}

// best is the first ready provider's model to begin with; sure says that no server
// that was not asked yet could have a better one.
func (r *Registry) best() (id string, sure bool) {
	sure = true
	for _, p := range r.Providers(false) {
		// HF_TOKEN and its like are there for other things than talking to models:
		// whoever wants that says so.
		if !p.Configured && slices.Contains(p.Variables, p.Key) && !strings.HasSuffix(p.Key, "_API_KEY") {
			continue
		}
		for _, m := range p.Models {
			if m.Ready && m.Start && !m.NoTools {
				return m.ID, sure
			}
		}
		sure = sure && !p.unasked
	}
	return OfflineID, sure
}

// Why says in words for people where the default comes from.
func (r *Registry) Why() string {
	o, _ := r.options()
	id := r.Default()
	switch provider, _, _ := strings.Cut(id, "/"); {
	case o.Env("GLADHAND_MODEL") != "":
		return "the variable GLADHAND_MODEL says so"
	case o.Model != "":
		return "the setting model says so"
	case id == OfflineID:
		return "no provider is ready"
	default:
		return provider + " is the first provider that is ready"
	}
}

// Warm looks around once, as [Registry.Refresh] does, unless that was done
// before; it waits at most until ctx ends.
func (r *Registry) Warm(ctx context.Context) {
	done := r.look()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Find returns the id of the model that a person means: an id, or the model's
// part of one where only one provider that is ready has such a model. It does not
// wait. The error is a [*Error] of [KindModel] that names the nearest, or says why
// the one that is meant cannot be used.
func (r *Registry) Find(name string) (string, error) {
	if strings.EqualFold(name, OfflineID) {
		return OfflineID, nil
	}
	list := r.Providers(true)
	if provider, id, ok := strings.Cut(name, "/"); ok {
		for _, p := range list {
			if p.ID == provider {
				return r.within(p, id)
			}
		}
	}
	// A bare id, which may have slashes of its own.
	var ready, others []Info
	for _, p := range list {
		for _, m := range p.Models {
			if m.Model != name && (p.Kind != KindOllama || m.Model != withTag(name)) {
				continue
			}
			if m.Ready {
				ready = append(ready, m)
			} else {
				others = append(others, m)
			}
		}
	}
	switch {
	case len(ready) == 1:
		return ready[0].ID, nil
	case len(ready) > 1:
		return "", unknownModel(name, "more than one provider has it", "Say which: "+ids(ready))
	case len(others) > 0:
		return r.pick(others[0])
	}
	return "", unknownModel(name, "there is no such model", r.suggest(name, list))
}

// pick is a model that was found. What its server said a while ago does not keep
// it from being chosen: the server may be there again.
func (r *Registry) pick(m Info) (string, error) {
	s := r.source(m.Provider)
	if s == nil || s.why == "" {
		return m.ID, nil
	}
	return "", &Error{Kind: s.fault, Model: m.ID, Text: "it cannot be used: " + s.why, Mend: s.mend}
}

// within finds a model of one provider.
func (r *Registry) within(p ProviderInfo, id string) (string, error) {
	if p.Kind == KindOllama {
		id = withTag(id)
	}
	for _, m := range p.Models {
		if m.Model == id {
			return r.pick(m)
		}
	}
	name := p.ID + "/" + id
	s := r.source(p.ID)
	switch {
	case id == "":
		return "", unknownModel(name, "the model's name is missing", "`gladhand models` lists them")
	case s == nil:
		return "", unknownModel(name, "there is no such model", "`gladhand models` lists those that there are")
	case s.why != "" && (s.asks || len(p.Models) == 0):
		return r.pick(Info{ID: name, Provider: p.ID})
	case s.asks && !r.said(s):
		return name, nil // it has not said what it has
	case p.Kind == KindOllama:
		r.stale(s.id)
		return "", unknownModel(name, "it is not installed", "Get it: ollama pull "+id)
	}
	return "", unknownModel(name, p.Name+" is not known to have it", r.suggest(name, []ProviderInfo{p})+
		" If it is new, add it to the setting providers."+p.ID+".models")
}

func (r *Registry) source(id string) *source {
	for _, s := range r.sources() {
		if s.id == id {
			return s
		}
	}
	return nil
}

func unknownModel(name, text, mend string) *Error {
	return &Error{Kind: KindModel, Model: name, Text: text, Mend: mend}
}

// suggest names the models that may have been meant.
func (r *Registry) suggest(name string, list []ProviderInfo) string {
	type near struct {
		id  string
		far int
	}
	var found []near
	for _, p := range list {
		for _, m := range p.Models {
			far := min(apart(name, m.ID), apart(name, m.Model))
			if len(name) >= 3 && strings.Contains(m.ID, name) {
				far = 0
			}
			if !m.Ready {
				far += 2
			}
			if far <= len(name)/3+1 {
				found = append(found, near{m.ID, far})
			}
		}
	}
	if len(found) == 0 {
		return "`gladhand models` lists those that there are."
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.far, b.far) })
	var names []string
	for _, n := range found[:min(3, len(found))] {
		names = append(names, n.id)
	}
	return "Did you mean " + strings.Join(names, ", ") + "?"
}

// apart is how many letters two names differ in; much, when they are not of about
// the same length.
func apart(a, b string) int {
	if d := len(a) - len(b); d > 3 || d < -3 {
		return len(a) + len(b)
	}
	return distance(a, b)
}

func ids(list []Info) string {
	var names []string
	for _, m := range list[:min(5, len(list))] {
		names = append(names, m.ID)
	}
	return strings.Join(names, ", ")
}

// Open makes the model that a person means by name, see [Registry.Find]; what can
// be tried again is. It does not wait. A key that is missing after all is the
// error of the first reply.
func (r *Registry) Open(name string) (Model, error) {
	id, err := r.Find(name)
	if err != nil {
		return nil, err
	}
	o, epoch := r.options()
	if id == OfflineID {
		return o.Offline, nil
	}
	r.mu.Lock()
	m, ok := r.opened[id]
	r.mu.Unlock()
	if ok {
		return m, nil
	}
	provider, modelID, _ := strings.Cut(id, "/")
	s := r.source(provider)
	if s == nil {
		return nil, unknownModel(id, "there is no such model", "`gladhand models` lists those that there are.")
	}
	m = r.build(s, modelID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if epoch == r.epoch {
		r.opened[id] = m
	}
	return m, nil
}
