package acp

import (
	"encoding/json"

	"gladhand"
)

// PermissionParams makes session/request_permission's parameters of an ask, in the
// shape of the version. The ask's id and digest are in _meta.gladhand.
func PermissionParams(version int, ask gladhand.Ask) json.RawMessage {
	var o object
	o.str("sessionId", string(ask.Session))
	if version == V2 {
		o.str("title", ask.Title)
		if ask.ToolCall != nil {
			var subject object
			subject.str("type", "tool_call")
			subject.raw("toolCall", askedToolV2(ask))
			o.raw("subject", subject.json())
		}
	} else {
		o.raw("toolCall", askedTool(ask))
	}
	options := make([][]byte, len(ask.Options))
	for i, opt := range ask.Options {
		var v object
		v.str("optionId", opt.ID)
		v.str("name", opt.Name)
		v.str("kind", string(opt.Kind))
		options[i] = v.json()
	}
	o.raw("options", array(options...))
	o.raw("_meta", wrapMeta(askMeta(ask)))
	return o.json()
}

func askMeta(ask gladhand.Ask) json.RawMessage {
	var o object
	o.str("askId", string(ask.ID))
	o.maybe("digest", ask.Digest)
	return o.json()
}

// askedTool is the tool call in v1's shape, with an id and a title in any case.
func askedTool(ask gladhand.Ask) json.RawMessage {
	id, title := false, false
	return rewrite(ask.ToolCall, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, nil
		case "toolCallId":
			id = true
		case "title":
			if title = !isNull(val); !title {
				return name, nil
			}
		}
		return name, val
	}, func(o *object) {
		if !id {
			o.str("toolCallId", "ask-"+string(ask.ID))
		}
		if !title {
			o.str("title", ask.Title)
		}
	})
}

func askedToolV2(ask gladhand.Ask) json.RawMessage {
	e := &gladhand.Event{Version: V1, Tag: TagToolCallUpdate, Update: askedTool(ask)}
	return toolToV2(e)[0]
}

// ParsePermission reads the result of session/request_permission: the option that
// was chosen, or cancelled. An outcome that is not known is an error.
func ParsePermission(result json.RawMessage) (option string, cancelled bool, err error) {
	outcome := get(result, "outcome")
	switch kind := getStr(outcome, "outcome"); kind {
	case "cancelled":
		return "", true, nil
	case "selected":
		option, ok := str(get(outcome, "optionId"))
		if !ok {
			return "", false, invalid("the outcome has no optionId")
		}
		return option, false, nil
	default:
		return "", false, invalid("the outcome of a permission must be selected or cancelled, not %q", kind)
	}
}

// PermissionResult makes the result of session/request_permission, for a guest that
// asked: the option, or cancelled when it is empty.
func PermissionResult(option string) json.RawMessage {
	var outcome, o object
	if option == "" {
		outcome.str("outcome", "cancelled")
	} else {
		outcome.str("outcome", "selected")
		outcome.str("optionId", option)
	}
	o.raw("outcome", outcome.json())
	return o.json()
}

// ElicitationParams makes elicitation/create's parameters of an ask that has some:
// the same in both versions, bound to the session.
func ElicitationParams(ask gladhand.Ask) json.RawMessage {
	return rewrite(ask.Elicitation, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionId", "requestId", "_meta":
			return name, nil
		}
		return name, val
	}, func(o *object) {
		o.str("sessionId", string(ask.Session))
		o.raw("_meta", wrapMeta(askMeta(ask)))
	})
}

// ParseElicitation reads the result of elicitation/create: action is accept (with
// content, which may be nil), decline or cancel.
func ParseElicitation(result json.RawMessage) (action string, content json.RawMessage, err error) {
	switch action = getStr(result, "action"); action {
	case "accept":
		return action, get(result, "content"), nil
	case "decline", "cancel":
		return action, nil, nil
	}
	return "", nil, invalid("the action of an elicitation must be accept, decline or cancel, not %q", action)
}
