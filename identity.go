package gladhand

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kind says whether a person or an agent is at the other end.
type Kind string

// The kinds of client.
const (
	Human Kind = "human"
	Agent Kind = "agent"
)

// Identity is who a caller is. The daemon stamps it when a connection is
// accepted; a client's own word for itself is only its Label.
type Identity struct {
	Kind Kind `json:"kind"`
	// Name is stamped: the user's name, or the agent session's title.
	Name string `json:"name"`
	// Label is what the client calls itself ("zed", "phone"); shown, never trusted.
	Label string `json:"label,omitempty"`
	// Client is the connection, unique in the daemon's life.
	Client ClientID `json:"client,omitempty"`
	// Session and Task are set for an agent: where it lives, and what it was asked.
	Session SessionID `json:"sessionId,omitempty"`
	Task    string    `json:"task,omitempty"`
	// Rights are never taken from the wire, nor sent on it.
	Rights Rights `json:"-"`
}

// Display is how people see an identity: the name, with the label behind it
// where the two differ.
func (id Identity) Display() string {
	switch {
	case id.Name == "":
		return id.Label
	case id.Label == "" || id.Label == id.Name:
		return id.Name
	}
	return id.Name + " (" + id.Label + ")"
}

// May returns nil when id has all of want, else an error of [CodeForbidden]
// that names what is missing.
func (id Identity) May(want Rights) error {
	if missing := want &^ id.Rights; missing != 0 {
		return Errorf(CodeForbidden, ReasonForbidden, "this needs the right to %s, which %s does not have", missing, id.Display())
	}
	return nil
}

// Rights is a set of what a client may do in a session.
type Rights uint8

// The single rights.
const (
	Observe   Rights = 1 << iota // see the log
	Prompting                    // put prompts in, cancel its own
	Answering                    // answer asks
	Configure                    // change mode, model, other options
	Manage                       // close, kill, delete, share
)

// The named sets of rights.
const (
	Owner      = Observe | Prompting | Answering | Configure | Manage
	Supervisor = Observe | Prompting | Answering
	Peer       = Prompting // and observe the turns it caused
	Approver   = Observe | Answering
	Watch      = Observe
)

var rightNames = []string{"observe", "prompt", "answer", "configure", "manage"}

// Has reports whether r includes all of want.
func (r Rights) Has(want Rights) bool { return r&want == want }

// String lists the single rights: "observe, answer".
func (r Rights) String() string { return strings.Join(r.Names(), ", ") }

// Names lists the single rights in r.
func (r Rights) Names() []string {
	names := []string{}
	for i, n := range rightNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// MarshalJSON writes the single rights as an array of names.
func (r Rights) MarshalJSON() ([]byte, error) { return json.Marshal(r.Names()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rights) UnmarshalJSON(b []byte) error {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return err
	}
	*r = 0
next:
	for _, n := range names {
		for i, known := range rightNames {
			if n == known {
				*r |= 1 << i
				continue next
			}
		}
		return fmt.Errorf("unknown right %q", n)
	}
	return nil
}
