package acp

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"gladhand"
)

// Implementation is what a side calls itself.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Initialize is the view of initialize's parameters, of both versions.
type Initialize struct {
	// Version is the one asked for, at least 1; math.MaxInt for any that is larger.
	Version int
	// V2Shape tells that the client wrote as v2 wants it: with "info".
	V2Shape bool
	Info    Implementation // clientInfo or info; empty when not given
	Caps    ClientCaps
	// Meta is _meta as it came; see [Meta].
	Meta json.RawMessage
}

// ClientCaps are the abilities of a client that we act on.
type ClientCaps struct {
	ReadFile, WriteFile bool // v1: fs/read_text_file, fs/write_text_file
	Form, URL           bool // elicitation
	OptIns                   // v1: what it wants to be sent; all set in v2
}

// Supported are the versions spoken, as errors name them.
var Supported = []int{V1, V2}

// ParseInitialize reads initialize's parameters. A protocolVersion that is no whole
// number from 1 on is an error of [gladhand.CodeVersion].
func ParseInitialize(params json.RawMessage) (Initialize, error) {
	var in Initialize
	if !isObject(params) || !valid(params) {
		return in, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "initialize needs an object with protocolVersion")
	}
	version, err := parseVersion(get(params, "protocolVersion"))
	if err != nil {
		return in, err
	}
	info, caps := get(params, "clientInfo"), get(params, "clientCapabilities")
	in.Version = version
	in.V2Shape = isObject(get(params, "info"))
	if in.V2Shape && version >= V2 {
		info, caps = get(params, "info"), get(params, "capabilities")
	} else if version == V2 {
		return in, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "initialize of version 2 needs info with name and version")
	}
	in.Info = Implementation{Name: getStr(info, "name"), Title: getStr(info, "title"), Version: getStr(info, "version")}
	in.Caps = parseCaps(caps, in.V2Shape && version >= V2)
	in.Meta = get(params, "_meta")
	return in, nil
}

func parseVersion(val []byte) (int, error) {
	n, err := strconv.Atoi(string(val))
	switch {
	case err == nil && n >= 1:
		return n, nil
	case err != nil && len(val) > 9 && allDigits(val):
		return math.MaxInt, nil
	}
	return 0, gladhand.Errorf(gladhand.CodeVersion, gladhand.ReasonVersion,
		"protocolVersion must be a whole number; this daemon speaks 1 and 2").With("supported", Supported)
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func parseCaps(caps []byte, v2 bool) ClientCaps {
	elicit := get(caps, "elicitation")
	c := ClientCaps{Form: isObject(get(elicit, "form")), URL: isObject(get(elicit, "url"))}
	if v2 {
		c.OptIns = OptIns{Notices: true, Compaction: true, Booleans: true, Plans: true, Subagents: true}
		return c
	}
	fs, session := get(caps, "fs"), get(caps, "session")
	c.ReadFile, c.WriteFile = isTrue(get(fs, "readTextFile")), isTrue(get(fs, "writeTextFile"))
	c.OptIns = OptIns{
		Notices:    isObject(get(session, "notices")),
		Compaction: isObject(get(session, "compaction")),
		Booleans:   isObject(get(get(session, "configOptions"), "boolean")),
		Plans:      isObject(get(caps, "plan")),
		Subagents:  isObject(get(caps, "subagents")),
	}
	return c
}

func isTrue(b []byte) bool { return string(b) == "true" }

// Negotiate chooses the version to speak. Of one above ours a client that wrote in
// v1's shape gets the newest, as v1 has it; one that wrote in v2's gets an error of
// [gladhand.CodeUnsupported] that names what it asked for and what there is.
func (in Initialize) Negotiate() (int, error) {
	switch {
	case in.Version <= Newest:
		return in.Version, nil
	case in.V2Shape:
		return 0, gladhand.Errorf(gladhand.CodeUnsupported, gladhand.ReasonVersion, "this daemon speaks versions 1 and 2 of the protocol").
			With("requested", min(in.Version, math.MaxUint16)).With("supported", Supported)
	}
	return Newest, nil
}

// Meta returns a member of a _meta object, such as "gladhand"; nil when it has none.
func Meta(meta json.RawMessage, name string) json.RawMessage { return get(meta, name) }

// Offer is what initialize's result says of us.
type Offer struct {
	Info Implementation
	// AuthMethods are ours in v1's shape: {id, name, description}.
	AuthMethods []AuthMethod
	// MCP says that MCP servers which a client passes are used.
	MCP bool
	// Meta is "gladhand" in the result's _meta; left out when nil.
	Meta json.RawMessage
}

// AuthMethod is a way to log in that the agent handles.
type AuthMethod struct{ ID, Name, Description string }

// InitializeResult makes initialize's result in the shape of the version. It offers
// what the daemon can do whatever the agent: embedded resources in prompts, images
// and all the stable methods of sessions; not audio, and not yet further directories.
func InitializeResult(version int, offer Offer) json.RawMessage {
	var o object
	o.int("protocolVersion", int64(version))
	methods := make([][]byte, len(offer.AuthMethods))
	for i, m := range offer.AuthMethods {
		methods[i] = m.json(version)
	}
	if version == V2 {
		o.raw("info", offer.Info.json())
		o.raw("capabilities", fmt.Appendf(nil, capsV2, flag(offer.MCP, `"mcp":{"stdio":{},"http":{}},`, "")))
	} else {
		o.raw("agentCapabilities", fmt.Appendf(nil, capsV1, flag(offer.MCP, "true", "false")))
		o.raw("agentInfo", offer.Info.json())
	}
	o.raw("authMethods", array(methods...))
	if offer.Meta != nil {
		o.raw("_meta", wrapMeta(offer.Meta))
	}
	return o.json()
}

const (
	capsV1 = `{"loadSession":true,"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},` +
		`"mcpCapabilities":{"http":%[1]s,"sse":%[1]s},` +
		`"sessionCapabilities":{"list":{},"delete":{},"close":{},"resume":{}}}`
	capsV2 = `{"session":{%s"prompt":{"embeddedContext":{},"image":{}},"delete":{}}}`
)

func flag(set bool, yes, no string) string {
	if set {
		return yes
	}
	return no
}

func (i Implementation) json() json.RawMessage {
	var o object
	o.str("name", i.Name)
	o.maybe("title", i.Title)
	o.str("version", i.Version)
	return o.json()
}

func (m AuthMethod) json(version int) json.RawMessage {
	var o object
	if version == V2 {
		o.str("type", "agent")
		o.str("methodId", m.ID)
	} else {
		o.str("id", m.ID)
	}
	o.str("name", m.Name)
	o.maybe("description", m.Description)
	return o.json()
}

// wrapMeta makes a _meta object of our part of it.
func wrapMeta(ours json.RawMessage) json.RawMessage {
	var o object
	o.raw("gladhand", ours)
	return o.json()
}
