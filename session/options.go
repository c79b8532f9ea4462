package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"gladhand"
	"gladhand/acp"
)

// The modes a session can be in: how much happens without asking.
const (
	ModeAsk   = "ask"   // reading in the workspace is free, the rest asks
	ModeEdits = "edits" // edits in the workspace are free too
	ModePlan  = "plan"  // nothing is changed
)

// The profiles: how strict a session's approvals are.
const (
	ProfileCoding   = "coding"
	ProfileSysadmin = "sysadmin" // every exact command asks, nothing is remembered
)

// Choice is one value of a config option.
type Choice struct{ ID, Name, Description string }

var modes = []Choice{
	{ModeAsk, "Ask", "Reading in the workspace is free; everything else asks"},
	{ModeEdits, "Edits", "Edits in the workspace are free too; commands ask"},
	{ModePlan, "Plan", "Nothing is changed"},
}

// Modes are the modes a session may choose.
func Modes() []Choice { return slices.Clone(modes) }

// Models says which models sessions may choose from. Its methods do not wait.
type Models interface {
	// Choices are those that are ready, the default one first.
	Choices() []Choice
	// Efforts are a model's words for how hard it thinks, nil when it has none.
	Efforts(model string) []string
	// Find returns the id of the model that a person means, or an error that says
	// which there are.
	Find(name string) (string, error)
}

// Fixed are models that are always there.
type Fixed []Choice

// Choices implements [Models].
func (f Fixed) Choices() []Choice { return f }

// Efforts implements [Models].
func (f Fixed) Efforts(string) []string { return nil }

// Find implements [Models].
func (f Fixed) Find(name string) (string, error) {
	if find(f, name) {
		return name, nil
	}
	return "", oneOf("model", name, f)
}

// The ids of the config options.
const (
	OptionMode   = "mode"
	OptionModel  = "model"
	OptionEffort = "effort"
)

// configOptions are the session's options as they stand.
func (o *Options) configOptions(in gladhand.SessionInfo) []acp.ConfigOption {
	models := o.Models.Choices()
	if !find(models, in.Model) { // chosen by name, or not ready any more
		models = append([]Choice{{ID: in.Model, Name: in.Model}}, models...)
	}
	options := []acp.ConfigOption{
		{ID: OptionMode, Name: "Mode", Category: "mode", Value: in.Mode, Choices: choices(modes)},
		{ID: OptionModel, Name: "Model", Category: "model", Value: in.Model, Choices: choices(models)},
	}
	if efforts := o.efforts(in.Model); efforts != nil {
		options = append(options, acp.ConfigOption{
			ID: OptionEffort, Name: "Thinking effort", Category: "thought_level", Value: cmp.Or(in.Effort, effortDefault), Choices: choices(efforts),
		})
	}
	return options
}

// effortDefault is the choice that leaves the effort to the model.
const effortDefault = "default"

// efforts are a model's efforts as choices, nil when it has none.
func (o *Options) efforts(model string) []Choice {
	words := o.Models.Efforts(model)
	if len(words) == 0 {
		return nil
	}
	list := []Choice{{ID: effortDefault, Name: "Default", Description: "What the model does by itself"}}
	for _, w := range words {
		list = append(list, Choice{ID: w, Name: upperFirst(w)})
	}
	return list
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// choose sets the model, and drops an effort that it does not know.
func (o *Options) choose(in *gladhand.SessionInfo, name string) error {
	id, err := o.Models.Find(name)
	if err != nil {
		return err
	}
	in.Model = id
	if !slices.Contains(o.Models.Efforts(id), in.Effort) {
		in.Effort = ""
	}
	return nil
}

// Options are the session's config options as they stand.
func (s *Session) Options() []acp.ConfigOption { return s.opts.configOptions(s.Info()) }

func choices(list []Choice) []acp.Choice {
	cs := make([]acp.Choice, len(list))
	for i, c := range list {
		cs[i] = acp.Choice{Value: c.ID, Name: c.Name, Description: c.Description}
	}
	return cs
}

func find(list []Choice, id string) bool {
	return slices.ContainsFunc(list, func(c Choice) bool { return c.ID == id })
}

func oneOf(what, value string, list []Choice) error {
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "there is no %s %q here", what, value).With("known", ids)
}

// check validates the choices of a new session and fills in the defaults.
func (h *Host) check(in *gladhand.SessionInfo) error {
	effort := in.Effort
	if list := h.opts.Models.Choices(); in.Model == "" && len(list) > 0 {
		in.Model = list[0].ID
	}
	if err := h.opts.choose(in, in.Model); err != nil {
		return err
	}
	if h.opts.Effort != nil && effort == "" {
		if e := h.opts.Effort(); slices.Contains(h.opts.Models.Efforts(in.Model), e) {
			in.Effort, effort = e, e
		}
	}
	if in.Agent == "" {
		in.Agent = "gladhand"
	}
	switch {
	case !find(modes, in.Mode):
		return oneOf("mode", in.Mode, modes)
	case in.Profile != ProfileCoding && in.Profile != ProfileSysadmin:
		return oneOf("profile", in.Profile, []Choice{{ID: ProfileCoding}, {ID: ProfileSysadmin}})
	case effort != in.Effort && h.opts.efforts(in.Model) != nil:
		return oneOf("effort", effort, h.opts.efforts(in.Model))
	case !h.opts.Knows(in.Agent):
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "there is no agent %q here", in.Agent)
	}
	return sysadmin(*in)
}

// sysadmin refuses what the profile does not allow.
func sysadmin(in gladhand.SessionInfo) error {
	if in.Profile == ProfileSysadmin && (in.Yes || in.Mode == ModeEdits) {
		return gladhand.Errorf(gladhand.CodeForbidden, gladhand.ReasonForbidden, "the profile sysadmin asks for every command: --yes and the mode edits are refused")
	}
	return nil
}

// SetOption changes an option of the session and tells every client. It needs
// the right to configure.
func (s *Session) SetOption(who gladhand.Identity, id, value string) ([]acp.ConfigOption, error) {
	if err := who.May(gladhand.Configure); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.log.unlock()
	if s.gone != nil {
		return nil, s.gone
	}
	in := s.row.Info
	switch id {
	case OptionMode:
		in.Mode = value
		if !find(modes, value) {
			return nil, oneOf("mode", value, modes)
		}
	case OptionModel:
		if err := s.opts.choose(&in, value); err != nil {
			return nil, err
		}
	case OptionEffort:
		if in.Effort = value; value == effortDefault {
			in.Effort = ""
		}
		if list := s.opts.efforts(in.Model); !find(list, value) {
			return nil, oneOf("effort", value, list)
		}
	default:
		return nil, oneOf("option", id, []Choice{{ID: OptionMode}, {ID: OptionModel}, {ID: OptionEffort}})
	}
	if err := sysadmin(in); err != nil {
		return nil, err
	}
	s.row.Info = in
	options := s.opts.configOptions(in)
	events := []*gladhand.Event{s.acpEvent(&who, acp.ConfigUpdate(options))}
	if id == OptionMode {
		events = append(events, s.acpEvent(&who, acp.CurrentMode(value)))
	}
	s.log.append(&op{with: s.put()}, events...)
	return options, nil
}

// acpEvent is an ACP update of the session's own; mu is held.
func (s *Session) acpEvent(who *gladhand.Identity, update json.RawMessage) *gladhand.Event {
	ev, err := acp.Describe(1, update)
	if err != nil {
		panic(err) // built by us
	}
	o := s.own(who, ev.Tag, struct{}{})
	ev.By, ev.At, ev.Class = o.By, o.At, gladhand.Fact
	return ev
}

// UseServers names the MCP servers of the session, ACP's mcpServers, which replace
// those of before from the next turn on. They are not stored: who opens the session
// again brings them again. An empty list changes nothing. It needs the right to
// configure.
func (s *Session) UseServers(who gladhand.Identity, servers json.RawMessage) error {
	var list []json.RawMessage
	if json.Unmarshal(servers, &list) != nil || len(list) == 0 {
		return nil
	}
	if err := who.May(gladhand.Configure); err != nil {
		return err
	}
	s.mu.Lock()
	s.servers = servers
	agent := s.agent
	s.mu.Unlock()
	if u, ok := agent.(ServerUser); ok {
		u.UseServers(servers)
	}
	return nil
}
