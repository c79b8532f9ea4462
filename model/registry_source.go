package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gladhand"
)

// source is a provider as it is reached.
type source struct {
	id, name, kind, url string
	key                 gladhand.Secret
	keyFrom             string
	variables           []string
	headers             map[string]gladhand.Secret
	models              []knownModel
	start               string
	usual               bool // shown without a key
	configured          bool // the settings name it
	moved               bool // a variable has another address
	needsKey            bool
	asks                bool // its server is asked for its models
	// why it cannot be used whatever its server says, what to do about it, and what
	// sort of fault that is.
	why, mend string
	fault     Kind
}

// trouble says why the source cannot be used, as far as is known.
func (s *source) trouble(l *look) (why, mend string) {
	switch {
	case s.why != "":
		return s.why, s.mend
	case l != nil && l.err != nil:
		return l.err.Text, l.err.Mend
	case l == nil && s.kind == KindOllama:
		return "it was not asked yet", "gladhand models asks it"
	}
	return "", ""
}

// sources are all providers, in the order in which a default is looked for: those
// of the settings, the usual ones, the rest of the catalogue.
func (r *Registry) sources() []*source {
	o, _ := r.options()
	var list []*source
	for i, k := range catalogue() {
		p, named := o.Providers[k.id]
		s := newSource(k.id, &catalogue()[i], p, o.Env)
		s.usual, s.configured = i < len(official), named
		list = append(list, s)
	}
	for _, id := range slices.Sorted(maps.Keys(o.Providers)) {
		if lookup(id) == nil {
			s := newSource(id, nil, o.Providers[id], o.Env)
			s.configured = true
			list = append(list, s)
		}
	}
	rank := func(s *source) int {
		switch {
		case s.configured:
			return 0
		case s.usual && s.kind != KindOllama:
			return 1
		case s.key.Reveal() != "" || s.moved && s.kind != KindOllama:
			return 2
		case s.usual: // an Ollama that happens to run
			return 3
		}
		return 4
	}
	slices.SortStableFunc(list, func(a, b *source) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// newSource puts together what the settings, the environment and the catalogue
// say of a provider; k is nil for one that the catalogue does not know.
func newSource(id string, k *known, o ProviderOptions, env func(string) string) *source {
	if k == nil {
		k = &known{id: id, name: id}
	}
	s := &source{id: id, name: k.name, kind: cmp.Or(o.Kind, k.kind, KindOpenAIChat), url: cmp.Or(o.URL, k.url), key: o.Key, headers: o.Headers, start: k.start, variables: k.keys}
	if o.URL == "" {
		for _, name := range k.urls {
			if v := strings.TrimSpace(env(name)); v != "" {
				s.url, s.moved = v, true
				break
			}
		}
	}
	if s.kind == KindOllama {
		s.url = ollamaHost(s.url)
	}
	s.url = strings.TrimRight(s.url, "/")
	elsewhere := s.url != strings.TrimRight(k.url, "/")
	if id == "openai" && elsewhere && o.Kind == "" {
		s.kind = KindOpenAIChat // compatible servers have that for certain
	}
	switch kind, name := s.key.Reference(); {
	case kind == "env":
		s.keyFrom = name
	case kind == "keyring":
		s.keyFrom = "the keyring"
	case !s.key.Empty():
		s.keyFrom = "the settings"
	default:
		for _, name := range k.keys {
			if v := strings.TrimSpace(env(name)); v != "" {
				s.key, s.keyFrom = gladhand.NewSecret(v), name
				break
			}
		}
	}
	s.needsKey = !elsewhere && len(k.keys) > 0
	s.list(k, o, elsewhere)
	s.judge(k, o, env)
	return s
}

// list says which models the source is known to have.
func (s *source) list(k *known, o ProviderOptions, elsewhere bool) {
	theirs := k.models
	if elsewhere && (s.kind == KindOpenAIChat || len(o.Models) > 0) {
		theirs, s.start = nil, "" // another server, other models
	}
	var own []knownModel
	for _, m := range o.Models {
		one := knownModel{m.ID, m.Name, m.Limits}
		if i := slices.IndexFunc(k.models, func(k knownModel) bool { return k.id == m.ID }); i >= 0 {
			one.name = cmp.Or(one.name, k.models[i].name)
			one.limits = overlay(k.models[i].limits, m.Limits)
		}
		own = append(own, one)
	}
	for _, m := range theirs {
		if !slices.ContainsFunc(own, func(o knownModel) bool { return o.id == m.id }) {
			own = append(own, m)
		}
	}
	s.models = own
	s.asks = s.kind == KindOllama || len(own) == 0 && (s.kind == KindOpenAIChat || s.kind == KindOpenAI)
}

// judge says what keeps the source from being used.
func (s *source) judge(k *known, o ProviderOptions, env func(string) string) {
	kind, name := s.key.Reference()
	switch {
	case o.Disabled:
		s.why, s.mend, s.fault = "it is disabled in the settings", "gladhand config set providers."+s.id+".disabled false", KindModel
	case s.url == "":
		s.why, s.mend, s.fault = "it has no address", "gladhand config set providers."+s.id+".url http://…", KindModel
	case !strings.HasPrefix(s.url, "http://") && !strings.HasPrefix(s.url, "https://"):
		s.why, s.mend, s.fault = "its address is no http address", "Look at the variable "+strings.Join(k.urls, ", "), KindModel
	case kind == "env" && env(name) == "":
		s.why, s.mend, s.fault = "the variable "+name+" is not set", "Set it where the daemon is started, then: gladhand daemon restart", KindKey
	case s.key.Empty() && s.needsKey:
		s.why, s.mend, s.fault = "no key", "Set "+strings.Join(k.keys, " or ")+", or keep one: gladhand models key "+s.id, KindKey
	}
}
