package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"
)

// ring is a keyring in memory; while it is locked it does not answer.
type ring struct {
	mu     sync.Mutex
	keys   map[string]string
	gets   int
	err    error
	locked chan struct{}
}

func (r *ring) Get(account string) (string, error) {
	if r.locked != nil {
		<-r.locked
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gets++
	if r.err != nil {
		return "", r.err
	}
	key, ok := r.keys[account]
	if !ok {
		return "", ErrNoKey
	}
	return key, nil
}

func (r *ring) Set(account, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[account] = key
	return r.err
}

func (r *ring) Delete(account string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.keys[account]; !ok {
		return ErrNoKey
	}
	delete(r.keys, account)
	return nil
}

func envOf(kv ...string) func(string) string {
	return func(name string) string {
		for _, e := range kv {
			if n, v, _ := strings.Cut(e, "="); n == name {
				return v
			}
		}
		return ""
	}
}

// nowhere is an address at which nobody listens.
func nowhere(t *testing.T) string {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

// compatible is a server with a list of models that answers every chat.
func compatible(t *testing.T, list string) (*httptest.Server, func() *http.Request) {
	t.Helper()
	var mu sync.Mutex
	var last *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		last = r
		mu.Unlock()
		switch {
		case r.URL.Path == "/v1/models" && list != "":
			_, _ = io.WriteString(w, list)
		case strings.HasSuffix(r.URL.Path, "/chat/completions"):
			_, _ = io.WriteString(w, sseOf(`{"choices":[{"delta":{"content":"ok"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, `[DONE]`))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s, func() *http.Request { mu.Lock(); defer mu.Unlock(); return last }
}

func registryOf(t *testing.T, o RegistryOptions, env ...string) *Registry {
	t.Helper()
	if !slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, "OLLAMA_HOST=") }) {
		env = append(env, "OLLAMA_HOST="+nowhere(t))
	}
	o.Env = envOf(env...)
	if o.Keyring == nil {
		o.Keyring = &ring{keys: map[string]string{}}
	}
	return NewRegistry(o)
}

func provider(t *testing.T, r *Registry, id string) ProviderInfo {
	t.Helper()
	for _, p := range r.Providers(true) {
		if p.ID == id {
			return p
		}
	}
	t.Fatalf("no provider %s", id)
	return ProviderInfo{}
}

func wantFault(t *testing.T, err error, kind Kind, says string) {
	t.Helper()
	var fault *Error
	if !errors.As(err, &fault) || fault.Kind != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v (%+v), want %s …%s…", err, fault, kind, says)
	}
}

func TestRegistryWithNothing(t *testing.T) {
	r := registryOf(t, RegistryOptions{})
	r.Refresh(t.Context())
	if r.Default() != "offline" || r.Why() != "no provider is ready" {
		t.Error(r.Default(), r.Why())
	}
	var names []string
	for _, p := range r.Providers(false) {
		names = append(names, p.ID)
		if p.Ready != (p.ID == "offline") || (p.Why == "") == (p.ID != "offline") || (p.Mend == "") == (p.ID != "offline") {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(names, []string{"anthropic", "openai", "gemini", "ollama", "offline"}) {
		t.Error(names)
	}
	if p := provider(t, r, "ollama"); !strings.Contains(p.Why, "is Ollama running?") {
		t.Error(p.Why)
	}
	m, err := r.Open("offline")
	if err != nil || m.Name() != "offline" {
		t.Error(m, err)
	}
	_, err = r.Open("anthropic/claude-opus-5")
	wantFault(t, err, KindKey, "ANTHROPIC_API_KEY")
	_, err = r.Open("claude-opus-5")
	wantFault(t, err, KindKey, "no key")
	_, err = r.Open("nosuch")
	wantFault(t, err, KindModel, "gladhand models")
	_, err = r.Open("")
	wantFault(t, err, KindModel, "")
}

func TestRegistryKeysFromTheEnvironment(t *testing.T) {
	for env, want := range map[string]string{
		"ANTHROPIC_API_KEY": "anthropic", "OPENAI_API_KEY": "openai", "GEMINI_API_KEY": "gemini", "GOOGLE_API_KEY": "gemini",
		"OPENROUTER_API_KEY": "openrouter", "DEEPSEEK_API_KEY": "deepseek", "GROQ_API_KEY": "groq", "XAI_API_KEY": "xai", "MOONSHOT_API_KEY": "moonshot",
	} {
		r := registryOf(t, RegistryOptions{}, env+"=key-canary")
		p := provider(t, r, want)
		if !p.Ready || p.Key != env || len(p.Models) == 0 || len(r.Models()) < len(p.Models) {
			t.Errorf("%s: %+v", env, p)
		}
		id := r.Default()
		if !strings.HasPrefix(id, want+"/") {
			t.Errorf("%s: the default is %s", env, id)
		}
		m, err := r.Open(id)
		if err != nil || m.Name() != id || m.Limits().Window == 0 {
			t.Errorf("%s: %v %v", env, m, err)
		}
		if s := fmt.Sprintf("%+v %#v %+v", r.Providers(true), m, r.Models()); strings.Contains(s, "canary") {
			t.Error("the key is shown")
		}
	}
}

func TestRegistryDefault(t *testing.T) {
	f := newFakeOllama(t, llava, qwen, oss)
	both := []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "DEEPSEEK_API_KEY=k", "OLLAMA_HOST=" + f.URL}
	local := map[string]ProviderOptions{"local": {URL: "http://127.0.0.1:1/v1", Models: []ModelOptions{{ID: "m1"}, {ID: "m2"}}}}
	for _, c := range []struct {
		o    RegistryOptions
		env  []string
		want string
	}{
		{RegistryOptions{}, both, "anthropic/claude-sonnet-4-6"},
		{RegistryOptions{}, both[2:], "deepseek/deepseek-v4-pro"},
		{RegistryOptions{}, both[3:], "ollama/qwen3:latest"}, // the first that has tools
		{RegistryOptions{Model: "gpt-5"}, both, "openai/gpt-5"},
		{RegistryOptions{}, []string{"HF_TOKEN=k", "SCW_SECRET_KEY=k"}, "offline"}, // keys for other things too
		{RegistryOptions{Providers: map[string]ProviderOptions{"huggingface": {}}}, []string{"HF_TOKEN=k"}, "huggingface/zai-org/GLM-5.2:fireworks-ai"},
		{RegistryOptions{Model: "nosuch"}, both, "nosuch"},
		{RegistryOptions{Model: "gpt-5"}, append(both, "GLADHAND_MODEL=offline"), "offline"},
		{RegistryOptions{Providers: local}, both, "local/m1"}, // the settings are a choice, the environment may be chance
	} {
		r := registryOf(t, c.o, c.env...)
		if strings.HasPrefix(c.want, "ollama") { // or Default waits, which may be too short on a busy machine
			r.Warm(t.Context())
		}
		if got := r.Default(); got != c.want {
			t.Errorf("%v %v: %s, want %s", c.o, c.env, got, c.want)
		}
	}
}

func TestRegistryOllama(t *testing.T) {
	f := newFakeOllama(t, llava, qwen, fakeModel{"embed:latest", "bert", []string{"embedding"}, 512, ""})
	r := registryOf(t, RegistryOptions{Providers: map[string]ProviderOptions{"ollama": {Key: gladhand.NewSecret("env:OLLAMA_KEY")}}}, "OLLAMA_HOST="+f.URL, "OLLAMA_KEY=secret-1")
	r.Refresh(t.Context())
	p := provider(t, r, "ollama")
	var got []string
	for _, m := range p.Models {
		got = append(got, fmt.Sprintf("%s %v %v %d %v", m.ID, m.NoTools, m.Limits.Images, m.Limits.Window, m.Start))
	}
	if want := []string{"ollama/llava:7b true true 32768 false", "ollama/qwen3:latest false false 40960 true"}; !p.Ready || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error(p.Why, got)
	}
	if f.auth != "Bearer secret-1" {
		t.Error(f.auth)
	}
	asked := func() int { f.mu.Lock(); defer f.mu.Unlock(); return f.shows }
	shows := asked()
	r.Refresh(t.Context())
	if asked() != shows {
		t.Error("what a model can do is asked again")
	}
	for _, name := range []string{"qwen3", "qwen3:latest", "ollama/qwen3"} {
		m, err := r.Open(name)
		if err != nil || m.Name() != "ollama/qwen3:latest" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if h := hear(t.Context(), m, say("x")); h.Err != nil || h.Text != "ok" {
			t.Errorf("%+v", h)
		}
	}
	_, err := r.Open("ollama/llama9")
	wantFault(t, err, KindModel, "ollama pull llama9:latest")
	f.mu.Lock()
	f.models = append(f.models, fakeModel{"llama9:latest", "llama", []string{"completion", "tools"}, 8192, ""})
	f.mu.Unlock()
	r.Refresh(t.Context())
	if _, err := r.Open("ollama/llama9"); err != nil {
		t.Error(err)
	}
	// While the server is away, its models can still be chosen: the reply says it.
	f.Close()
	r.Refresh(t.Context())
	if p := provider(t, r, "ollama"); p.Ready || p.Why == "" {
		t.Errorf("%+v", p)
	}
	if _, err := r.Open("ollama/anything"); err != nil {
		t.Error(err)
	}
}

func TestRegistryEndpoints(t *testing.T) {
	list := `{"object":"list","data":[{"id":"qwen3-30b","max_model_len":32768},{"id":"bad id"},{"id":"llama.gguf","meta":{"n_ctx_train":131072,"n_ctx":4096}}]}`
	s, last := compatible(t, list)
	r := registryOf(t, RegistryOptions{Providers: map[string]ProviderOptions{
		"local":   {URL: s.URL + "/v1", Headers: map[string]gladhand.Secret{"X-Team": gladhand.NewSecret("env:TEAM")}},
		"listed":  {URL: s.URL + "/v1/", Kind: KindOpenAIChat, Key: gladhand.NewSecret("literal-key"), Models: []ModelOptions{{ID: "mine", Limits: Limits{Window: 5, Price: Price{Input: 1}}}}},
		"no-url":  {},
		"no-var":  {URL: s.URL, Key: gladhand.NewSecret("env:NOSUCH")},
		"off":     {URL: s.URL, Disabled: true},
		"away":    {URL: nowhere(t)},
		"openai":  {Models: []ModelOptions{{ID: "gpt-9", Limits: Limits{Window: 9}}, {ID: "gpt-5", Limits: Limits{Window: 7}}}},
		"no-list": {URL: s.URL + "/other"},
	}}, "TEAM=blue-team", "OPENAI_API_KEY=k")
	// What is listed is ready; where nothing is known, any name may be used.
	if id, err := r.Find("away/anything"); err != nil || id != "away/anything" {
		t.Error(id, err)
	}
	if id, err := r.Find("mine"); err != nil || id != "listed/mine" {
		t.Error(id, err)
	}
	r.Refresh(t.Context())
	for id, want := range map[string]string{
		"local": "true  local/qwen3-30b:32768 local/llama.gguf:4096", "listed": "true  listed/mine:5", "no-url": "false it has no address",
		"no-var": "false the variable NOSUCH is not set", "off": "false it is disabled in the settings", "no-list": "false it has no models",
	} {
		p := provider(t, r, id)
		got := fmt.Sprint(p.Ready, " ", p.Why)
		for _, m := range p.Models {
			got += fmt.Sprintf(" %s:%d", m.ID, m.Limits.Window)
		}
		if got != want || !p.Ready && p.Mend == "" {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if p := provider(t, r, "away"); p.Ready || !strings.Contains(p.Why, "refuses connections") {
		t.Errorf("%+v", p)
	}
	openai := provider(t, r, "openai")
	if openai.Models[0].ID != "openai/gpt-9" || openai.Models[1].Limits.Window != 7 || openai.Models[1].Limits.Output == 0 || len(openai.Models) < 20 {
		t.Errorf("%+v", openai.Models[:2])
	}
	for name, want := range map[string]struct {
		kind Kind
		says string
	}{
		"local/qwen3-30":          {KindModel, "Did you mean local/qwen3-30b?"},
		"qwen3-30":                {KindModel, "local/qwen3-30b"},
		"no-var/x":                {KindKey, "NOSUCH"},
		"off/x":                   {KindModel, "disabled"},
		"no-url/x":                {KindModel, "no address"},
		"local/":                  {KindModel, "missing"},
		"openai/gpt-77":           {KindModel, "providers.openai.models"},
		"anthropic/claude-opus-5": {KindKey, "no key"},
	} {
		_, err := r.Find(name)
		wantFault(t, err, want.kind, want.says)
	}
	if _, err := r.Find("no-list/x"); err != nil {
		t.Error("a server without a list has any model: ", err)
	}
	m, err := r.Open("qwen3-30b")
	if err != nil {
		t.Fatal(err)
	}
	if h := hear(t.Context(), m, say("x")); h.Err != nil || h.Text != "ok" || last().URL.Path != "/v1/chat/completions" || last().Header.Get("X-Team") != "blue-team" || last().Header.Get("Authorization") != "" {
		t.Errorf("%+v %+v", h, last().Header)
	}
	m, err = r.Open("listed/mine")
	if err != nil || m.Limits().Price.Input != 1 {
		t.Fatal(m, err)
	}
	if h := hear(t.Context(), m, say("x")); h.Err != nil || last().Header.Get("Authorization") != "Bearer literal-key" {
		t.Errorf("%+v %+v", h, last().Header)
	}
	if again, _ := r.Open("listed/mine"); again != m {
		t.Error("it is opened again")
	}
}

// Another address for a known provider: a proxy for Anthropic has its models, a
// server in OpenAI's place has its own and needs no key.
func TestRegistryOtherAddresses(t *testing.T) {
	s, last := compatible(t, `{"data":[{"id":"tiny"}]}`)
	r := registryOf(t, RegistryOptions{}, "OPENAI_BASE_URL="+s.URL+"/v1", "ANTHROPIC_BASE_URL="+s.URL, "ANTHROPIC_API_KEY=k")
	r.Refresh(t.Context())
	o, a := provider(t, r, "openai"), provider(t, r, "anthropic")
	if !o.Ready || o.Kind != KindOpenAIChat || len(o.Models) != 1 || o.Models[0].ID != "openai/tiny" {
		t.Errorf("%+v", o)
	}
	if !a.Ready || a.Kind != KindAnthropic || len(a.Models) < 10 || a.URL != s.URL {
		t.Errorf("%+v", a)
	}
	m, err := r.Open("openai/tiny")
	if err != nil {
		t.Fatal(err)
	}
	if h := hear(t.Context(), m, say("x")); h.Err != nil || last().URL.Path != "/v1/chat/completions" {
		t.Errorf("%+v", h)
	}
	bad := registryOf(t, RegistryOptions{}, "OPENAI_BASE_URL=nonsense", "OPENAI_API_KEY=k")
	if p := provider(t, bad, "openai"); p.Ready || !strings.Contains(p.Mend, "OPENAI_BASE_URL") {
		t.Errorf("%+v", p)
	}
}

func TestRegistryKeyring(t *testing.T) {
	s, last := compatible(t, "")
	k := &ring{keys: map[string]string{"local": "ring-canary-1", "shared": "ring-canary-2"}}
	r := registryOf(t, RegistryOptions{Keyring: k, Providers: map[string]ProviderOptions{
		"local":   {URL: s.URL, Key: gladhand.NewSecret("keyring:"), Models: []ModelOptions{{ID: "a"}}},
		"other":   {URL: s.URL, Key: gladhand.NewSecret("keyring:shared"), Models: []ModelOptions{{ID: "b"}}},
		"nothing": {URL: s.URL, Key: gladhand.NewSecret("keyring:"), Models: []ModelOptions{{ID: "c"}}},
	}})
	if ms := r.Models(); k.gets != 0 || !ms[0].Ready || r.Default() != "local/a" {
		t.Error("the keyring was opened without need, or its models are not offered", k.gets, ms)
	}
	for name, want := range map[string]string{"a": "Bearer ring-canary-1", "b": "Bearer ring-canary-2"} {
		m, err := r.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if h := hear(t.Context(), m, say("x")); h.Err != nil || last().Header.Get("Authorization") != want {
			t.Errorf("%+v %v", h, last().Header)
		}
	}
	m, err := r.Open("c")
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, hear(t.Context(), m, say("x")).Err, KindKey, "gladhand models key nothing")
	r.Refresh(t.Context())
	if p := provider(t, r, "nothing"); p.Ready || !strings.Contains(p.Why, "no key") || p.Key != "the keyring" {
		t.Errorf("%+v", p)
	}
	if p := provider(t, r, "local"); !p.Ready {
		t.Errorf("%+v", p)
	}
}

// A keyring that waits for somebody to unlock it holds nobody up for long.
func TestKeysArePatient(t *testing.T) {
	k := &ring{keys: map[string]string{}, locked: make(chan struct{})}
	keys := Keys{Keyring: k, Patience: time.Millisecond, Env: envOf("A=b")}
	_, err := keys.Resolve(t.Context(), gladhand.NewSecret("keyring:x"), "")
	if err == nil || !strings.Contains(err.Error(), "locked") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	keys.Patience = time.Hour
	if _, err = keys.Resolve(ctx, gladhand.NewSecret("keyring:x"), ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(k.locked)
	k = &ring{keys: map[string]string{}}
	keys.Keyring = k
	k.err = errors.New("exec: secret-canary")
	if err := keys.Probe(t.Context()); err == nil || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	k.err = nil
	if err := keys.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(keys.Store(t.Context(), "x", "secret"), keys.Forget(t.Context(), "x")); err != nil {
		t.Error(err)
	}
	if err := keys.Forget(t.Context(), "x"); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	for text, want := range map[string]string{"env:A": "b", "plain": "plain", "": ""} {
		if got, err := keys.Resolve(t.Context(), gladhand.NewSecret(text), ""); err != nil || got != want {
			t.Error(text, got, err)
		}
	}
}

// Nothing waits for a server that does not answer.
func TestRegistryDoesNotWait(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hang)
	r := registryOf(t, RegistryOptions{Providers: map[string]ProviderOptions{"slow": {URL: s.URL}}}, "OLLAMA_HOST="+s.URL)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Models()
		_ = r.Default()
		_, _ = r.Open("slow/x")
		r.Providers(true)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.Warm(ctx)
		r.Refresh(ctx)
	}()
	select {
	case <-done:
	case <-time.After(lookTime / 2):
		t.Error("something waits")
	}
}

// What was seen of a provider is forgotten when its settings change, not before.
func TestRegistryConfigureKeepsLooks(t *testing.T) {
	f := newFakeOllama(t, qwen)
	o := RegistryOptions{Env: envOf("OLLAMA_HOST=" + f.URL)}
	r := NewRegistry(o)
	r.Refresh(t.Context())
	o.Model, o.Providers = "", map[string]ProviderOptions{"x": {}}
	r.Configure(o)
	if got := r.Default(); got != "ollama/qwen3:latest" {
		t.Error(got)
	}
	o.Providers = map[string]ProviderOptions{"ollama": {URL: nowhere(t)}}
	r.Configure(o)
	r.Refresh(t.Context())
	if got := r.Default(); got != "offline" {
		t.Error(got)
	}
}

func TestRegistryConfigure(t *testing.T) {
	s, _ := compatible(t, "")
	r := registryOf(t, RegistryOptions{})
	one := RegistryOptions{Env: envOf(), Providers: map[string]ProviderOptions{"local": {URL: s.URL, Models: []ModelOptions{{ID: "a"}}}}}
	if _, err := r.Open("local/a"); err == nil {
		t.Error("it is there already")
	}
	r.Configure(one)
	m, err := r.Open("local/a")
	if err != nil {
		t.Fatal(err)
	}
	r.Configure(RegistryOptions{Env: envOf()})
	if _, err := r.Open("local/a"); err == nil {
		t.Error("it is still there")
	}
	if h := hear(t.Context(), m, say("x")); h.Err != nil {
		t.Error("what is open does not go on: ", h.Err)
	}
	bad := registryOf(t, RegistryOptions{Network: Network{CA: "/nosuch"}, Providers: one.Providers})
	if m, err = bad.Open("local/a"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, hear(t.Context(), m, say("x")).Err, KindRequest, "network.ca")
}

// The catalogue is what we expect of it: every provider can be reached and has a
// model to begin with that it knows, and no price is less than it can be.
func TestCatalogue(t *testing.T) {
	n := 0
	for _, k := range catalogue() {
		u, err := url.Parse(k.url)
		if err != nil || u.Host == "" || k.name == "" {
			t.Errorf("%+v", k.id)
		}
		if k.kind == KindOllama {
			continue
		}
		if len(k.keys) == 0 || len(k.models) == 0 || !slices.Contains([]string{KindAnthropic, KindOpenAI, KindOpenAIChat, KindGemini}, k.kind) {
			t.Errorf("%s: %v %d %s", k.id, k.keys, len(k.models), k.kind)
		}
		if !slices.ContainsFunc(k.models, func(m knownModel) bool { return m.id == k.start }) {
			t.Logf("%s begins with %s, which it does not have", k.id, k.start) // then with the first
		}
		for _, m := range k.models {
			n++
			p := m.limits.Price
			if p.Input < 0 || p.CacheRead > p.Input || p.CacheWrite < p.Input || p.Input > 0 && p.CacheRead <= 0 {
				t.Errorf("%s/%s: %+v", k.id, m.id, p)
			}
		}
	}
	if n < 500 {
		t.Errorf("%d models", n)
	}
	sonnet := lookup("anthropic").models[slices.IndexFunc(lookup("anthropic").models, func(m knownModel) bool { return m.id == "claude-sonnet-4-6" })]
	if sonnet.limits.Price != (Price{3, 15, 0.3, 3.75}) || sonnet.limits.Window != 200000 || !sonnet.limits.Images || len(sonnet.limits.Efforts) == 0 {
		t.Errorf("%+v", sonnet)
	}
}

// Requests go to the address that the catalogue has.
func TestCatalogueAddresses(t *testing.T) {
	for _, k := range catalogue() {
		e := Endpoint{Provider: k.id, Model: "m", BaseURL: k.url, Key: func() string { return "k" }}
		var asked string
		e.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.String()
			return nil, errors.New("enough")
		})}
		hear(t.Context(), speak(k.kind, e), say("x"))
		want := strings.TrimRight(k.url, "/") + map[string]string{
			KindAnthropic: "/v1/messages", KindOpenAI: "/responses", KindOpenAIChat: "/chat/completions",
			KindGemini: "/v1beta/models/m:streamGenerateContent?alt=sse", KindOllama: "/api/show",
		}[k.kind]
		if asked != want {
			t.Errorf("%s: %s, want %s", k.id, asked, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
