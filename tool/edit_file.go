package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:embed edit_file.md
var editFileText string

//go:embed edit_file.json
var editFileSchema []byte

type editFile struct{}

type editFileArgs struct {
	Path   string `json:"path"`
	Edits  []edit `json:"edits"`
	Append string `json:"append"`
}

func (editFile) Spec() Spec {
	return Spec{Name: "edit_file", Description: editFileText, Schema: editFileSchema, Kind: "edit"}
}

func (editFile) Title(args json.RawMessage) string {
	var a editFileArgs
	peek(args, &a)
	return "Edit " + oneLine(a.Path, 80)
}

func (t editFile) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a editFileArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if len(a.Edits) == 0 && a.Append == "" {
		return nil, errors.New("give edits, or text to append")
	}
	path, err := env.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	base, err := load(path, env.show(path))
	if err != nil {
		return nil, err
	}
	if !base.exists {
		return nil, fmt.Errorf("%s does not exist; create it with write_file", env.show(path))
	}
	if last, ok := env.Files.last(path); ok && last != base.digest {
		return nil, errChanged(env.show(path))
	}
	if kind := binaryKind(base.data); kind != "" {
		return nil, fmt.Errorf("%s is %s, not text", env.show(path), kind)
	}
	body, enc, err := decodeText(base.data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", env.show(path), err)
	}
	splices, err := spliceAll(body, a.Edits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", env.show(path), err)
	}
	if a.Append != "" {
		splices = append(splices, appending(body, a.Append))
	}
	w := fileChange{
		env: env, tool: "edit_file", given: a.Path, path: path, base: base,
		after: spliced(body, splices), diffs: diffs(path, body, splices), line: splices[0].line,
	}
	switch enc {
	case utf8BOM:
		w.after = slices.Insert(w.after, 0, []byte(bom[enc]))
	case utf16LE, utf16BE:
		w.after = content{encodeText(w.after.joined(), enc)}
	}
	if w.after.is(base.data) {
		return nil, errNothing
	}
	w.done = report(env.show(path), splices, len(a.Edits) > 0, a.Append != "")
	return w.call(t.Title(args), args), nil
}

// appending is the splice that adds text as new lines at the end.
func appending(body []byte, text string) splice {
	v := lfView(body)
	end := v.endAt(len(v.text))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if len(body) > 0 && body[len(body)-1] != '\n' {
		text = "\n" + text
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return splice{start: len(body), end: len(body), with: []byte(strings.ReplaceAll(text, "\n", end)), line: v.line(len(v.text))}
}

func report(name string, splices []splice, edited, appended bool) string {
	n := len(splices)
	if appended {
		n--
	}
	var did []string
	if edited {
		var lines []string
		for _, s := range splices[:min(n, 10)] {
			lines = append(lines, fmt.Sprint(s.line))
		}
		where := "line "
		if n > 1 {
			where = "lines "
		}
		more := ""
		if n > 10 {
			more = ", …"
		}
		did = append(did, fmt.Sprintf("%s (exact match, %s%s%s)", count(n, "replacement"), where, strings.Join(lines, ", "), more))
	}
	if appended {
		did = append(did, "text added at the end")
	}
	return fmt.Sprintf("Edited %s: %s.", name, strings.Join(did, "; "))
}
