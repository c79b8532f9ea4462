package client

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"

	"gladhand"
)

// Link says whether an [Update] is news of the connection.
type Link uint8

// The news of a connection.
const (
	NoNews Link = iota // an update of the session
	Lost               // the connection ended; Err says why; it is being made again
	Back               // it is there again; Snapshot is new; updates go on behind the last
)

// Update is one entry of a session's stream: an update of the session, or news
// of the connection to it.
type Update struct {
	Link Link
	Err  error // of Lost

	// Meta has the numbers that the update covers, and who caused it.
	Meta gladhand.UpdateMeta
	// Tag is Raw's "sessionUpdate".
	Tag string
	// Raw is the update object as it came: ACP v1's, or one of ours.
	Raw json.RawMessage
}

// Decode reads the update into v. Unknown members are ignored.
func (u Update) Decode(v any) error { return json.Unmarshal(u.Raw, v) }

// Params are the parameters of session/update, as the daemon sends them.
func (u Update) Params(id gladhand.SessionID) json.RawMessage {
	b, err := json.Marshal(updateParams{SessionID: id, Update: u.Raw, Meta: metaParams{Gladhand: u.Meta}})
	if err != nil {
		return nil // Raw was valid when it came
	}
	return b
}

type updateParams struct {
	SessionID gladhand.SessionID `json:"sessionId"`
	Update    json.RawMessage    `json:"update"`
	Meta      metaParams         `json:"_meta"`
}

type metaParams struct {
	Gladhand gladhand.UpdateMeta `json:"gladhand"`
}

// parseUpdate reads the parameters of session/update.
func parseUpdate(params json.RawMessage) (gladhand.SessionID, Update, error) {
	var p updateParams
	if err := jsonv2.Unmarshal(params, &p); err != nil {
		return p.SessionID, Update{}, fmt.Errorf("the daemon sent an update that cannot be read: %w", err)
	}
	u := Update{Meta: p.Meta.Gladhand, Raw: p.Update, Tag: tagOf(p.Update)}
	if u.Tag == "" {
		return p.SessionID, Update{}, fmt.Errorf("the daemon sent an update of no kind")
	}
	return p.SessionID, u, nil
}

var tagFirst = []byte(`{"sessionUpdate":"`)

// tagOf finds an update's tag: at its usual place at once, else by reading it.
func tagOf(raw json.RawMessage) string {
	if rest, ok := bytes.CutPrefix(raw, tagFirst); ok {
		if i := bytes.IndexAny(rest, `"\`); i >= 0 && rest[i] == '"' {
			return string(rest[:i])
		}
	}
	var v struct {
		Tag string `json:"sessionUpdate"`
	}
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	return v.Tag
}

// UpdateOf is an update from a page of the log.
func UpdateOf(u gladhand.LoggedUpdate) Update {
	return Update{Meta: u.Meta, Tag: tagOf(u.Update), Raw: u.Update}
}
