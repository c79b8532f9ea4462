package acp

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"gladhand"
)

// What a prompt may hold.
const (
	MaxBlocks = 1024
	// MaxData is the decoded size of one image, sound or blob, in bytes.
	MaxData = 5 << 20
)

// ValidatePrompt checks a prompt before it is stored, so that nothing is kept that
// would make every later turn fail: an array of 1 to MaxBlocks objects with a
// type, whose text is text and whose data is base64 of at most MaxData bytes. Blocks
// of a type that is not known pass. Errors are of [gladhand.CodeInvalidParams].
func ValidatePrompt(content json.RawMessage) error {
	if !isArray(content) || !valid(content) {
		return invalid("a prompt must be an array of content blocks")
	}
	n := 0
	var err error
	eachItem(content, func(s gladhand.Span) bool {
		n++
		err = validateBlock(content[s.Start:s.End], n)
		return err == nil && n <= MaxBlocks
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return invalid("a prompt must have at least one content block")
	case n > MaxBlocks:
		return invalid("a prompt may have at most %d content blocks", MaxBlocks)
	}
	return nil
}

func validateBlock(block []byte, n int) error {
	if !isObject(block) {
		return invalid("content block %d must be an object", n)
	}
	kind, ok := str(get(block, "type"))
	if !ok || kind == "" {
		return invalid("content block %d has no type", n)
	}
	need := func(in []byte, names ...string) error {
		for _, name := range names {
			if _, ok := str(get(in, name)); !ok {
				return invalid("content block %d (%s) needs %s", n, kind, name)
			}
		}
		return nil
	}
	switch kind {
	case "text":
		return need(block, "text")
	case "image", "audio":
		if err := need(block, "data", "mimeType"); err != nil {
			return err
		}
		return validateData(getStr(block, "data"), kind, n)
	case "resource_link":
		return need(block, "uri", "name")
	case "resource":
		res := get(block, "resource")
		if err := need(res, "uri"); err != nil {
			return err
		}
		if get(res, "text") != nil {
			return need(res, "text")
		}
		if err := need(res, "blob"); err != nil {
			return err
		}
		return validateData(getStr(res, "blob"), kind, n)
	}
	return nil
}

func validateData(data, kind string, n int) error {
	if base64.StdEncoding.DecodedLen(len(data)) > MaxData+2 {
		return invalid("content block %d (%s) is over %d MiB", n, kind, MaxData>>20)
	}
	if data == "" {
		return invalid("content block %d (%s) has no data", n, kind)
	}
	if strings.ContainsAny(data, "\r\n") {
		return invalid("content block %d (%s) is not valid base64", n, kind)
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return invalid("content block %d (%s) is not valid base64", n, kind)
	}
	return nil
}

// ParseCommand reads a prompt that is a slash command: one block of text, which is
// a slash, a name of small letters and hyphens, and perhaps a blank and arguments.
func ParseCommand(content json.RawMessage) (name, args string, ok bool) {
	n, text := 0, ""
	eachItem(content, func(s gladhand.Span) bool {
		n++
		if block := content[s.Start:s.End]; getStr(block, "type") == "text" {
			text = getStr(block, "text")
		}
		return n < 2
	})
	rest, slash := strings.CutPrefix(text, "/")
	if n != 1 || !slash {
		return "", "", false
	}
	name = rest
	if i := strings.IndexAny(rest, " \t\r\n"); i >= 0 {
		name, args = rest[:i], strings.TrimSpace(rest[i:])
	}
	if name == "" || name[0] == '-' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return "", "", false
	}
	return name, args, true
}

// Text is content blocks as plain text, for models and views that have nothing
// else: text as it is, a link as its name and address, an embedded text with its
// address above, and other data by its kind. content is an array of blocks, or one.
func Text(content json.RawMessage) string {
	var parts []string
	add := func(block []byte) {
		if t := blockAsText(block); t != "" {
			parts = append(parts, t)
		}
	}
	if isObject(content) {
		add(content)
	}
	eachItem(content, func(s gladhand.Span) bool {
		add(content[s.Start:s.End])
		return true
	})
	return strings.Join(parts, "\n")
}

func blockAsText(block []byte) string {
	switch kind := getStr(block, "type"); kind {
	case "text":
		return getStr(block, "text")
	case "resource_link":
		name, uri := getStr(block, "name"), getStr(block, "uri")
		if name == "" || name == uri {
			return uri
		}
		return name + " (" + uri + ")"
	case "resource":
		res := get(block, "resource")
		uri := getStr(res, "uri")
		if text, ok := str(get(res, "text")); ok {
			return uri + ":\n" + text
		}
		return "[" + or(getStr(res, "mimeType"), "data") + " " + uri + "]"
	case "":
		return ""
	default:
		return "[" + or(getStr(block, "mimeType"), kind) + "]"
	}
}

// ChunkText is the text of a message chunk, or of a message that is one block of
// text, decoded; "" for any other event.
func ChunkText(e *gladhand.Event) string {
	if !hasText(e) || kinds[e.Tag].form == formData {
		return ""
	}
	return string(unescape(e.Update[e.Text.Start:e.Text.End]))
}
