package session

import (
	"encoding/json"
	"slices"

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

// The ids of the config options.
const (
	OptionMode  = "mode"
	OptionModel = "model"
)

// configOptions are the session's options as they stand.
func (o *Options) configOptions(in gladhand.SessionInfo) []acp.ConfigOption {
	return []acp.ConfigOption{
		{ID: OptionMode, Name: "Mode", Category: "mode", Value: in.Mode, Choices: choices(modes)},
		{ID: OptionModel, Name: "Model", Category: "model", Value: in.Model, Choices: choices(o.Models)},
	}
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
	if in.Model == "" && len(h.opts.Models) > 0 {
		in.Model = h.opts.Models[0].ID
	}
	if in.Agent == "" {
		in.Agent = "gladhand"
	}
	switch {
	case !find(modes, in.Mode):
		return oneOf("mode", in.Mode, modes)
	case in.Profile != ProfileCoding && in.Profile != ProfileSysadmin:
		return oneOf("profile", in.Profile, []Choice{{ID: ProfileCoding}, {ID: ProfileSysadmin}})
	case !find(h.opts.Models, in.Model):
		return oneOf("model", in.Model, h.opts.Models)
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
		in.Model = value
		if !find(s.opts.Models, value) {
			return nil, oneOf("model", value, s.opts.Models)
		}
	default:
		return nil, oneOf("option", id, []Choice{{ID: OptionMode}, {ID: OptionModel}})
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
