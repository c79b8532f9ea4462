package acp

import "encoding/json"

// ConfigOption is a configuration option of a session: one of a list, or, without
// choices, on or off.
type ConfigOption struct {
	ID, Name, Description string
	Category              string // mode, model, model_config, thought_level, or our own with "_"
	Value                 string // a choice's value; "true" or "false" without choices
	Choices               []Choice
}

// Choice is one value of an option.
type Choice struct {
	Value, Name, Description string
}

// ConfigOptions makes the array of options in the shape of the version.
func ConfigOptions(version int, options []ConfigOption) json.RawMessage {
	items := make([][]byte, len(options))
	for i, opt := range options {
		items[i] = opt.json(version)
	}
	return array(items...)
}

func (c ConfigOption) json(version int) json.RawMessage {
	var o object
	id := "id"
	if version == V2 {
		id = "configId"
	}
	o.str(id, c.ID)
	o.str("name", c.Name)
	o.maybe("description", c.Description)
	o.maybe("category", c.Category)
	if c.Choices == nil {
		o.str("type", "boolean")
		o.bool("currentValue", c.Value == "true")
		return o.json()
	}
	o.str("type", "select")
	o.str("currentValue", c.Value)
	choices := make([][]byte, len(c.Choices))
	for i, ch := range c.Choices {
		var v object
		v.str("value", ch.Value)
		v.str("name", or(ch.Name, ch.Value))
		v.maybe("description", ch.Description)
		choices[i] = v.json()
	}
	o.raw("options", array(choices...))
	return o.json()
}

// Modes are v1's modes of a session.
type Modes struct {
	Current   string
	Available []Mode
}

// Mode is one of them.
type Mode struct{ ID, Name, Description string }

// ModeState makes v1's modes.
func ModeState(m Modes) json.RawMessage {
	items := make([][]byte, len(m.Available))
	for i, mode := range m.Available {
		var v object
		v.str("id", mode.ID)
		v.str("name", or(mode.Name, mode.ID))
		v.maybe("description", mode.Description)
		items[i] = v.json()
	}
	var o object
	o.str("currentModeId", m.Current)
	o.raw("availableModes", array(items...))
	return o.json()
}
