package acp

import (
	"bytes"
	"strconv"
	"strings"

	"gladhand"
)

// diffToV2 makes v2's changes and patch of v1's path, old text and new text. The
// patch has one hunk: what is left when equal lines at both ends are taken off,
// with three lines around. Other members stay.
func diffToV2(item []byte) []byte {
	path := getStr(item, "path")
	oldVal := get(item, "oldText")
	oldText, _ := str(oldVal)
	newText := getStr(item, "newText")
	added := isNull(oldVal)
	return rewrite(item, func(name string, val []byte) (string, []byte) {
		switch name {
		case "path", "oldText", "newText", "changes", "patch":
			return name, nil
		}
		return name, val
	}, func(o *object) {
		var change, patch object
		if added {
			change.str("operation", "add")
		} else {
			change.str("operation", "modify")
		}
		change.str("path", path)
		o.raw("changes", array(change.json()))
		patch.str("format", "git_patch")
		patch.str("text", gitPatch(path, oldText, newText, added))
		o.raw("patch", patch.json())
	})
}

// patchContext is how many equal lines stand around a hunk.
const patchContext = 3

// gitPatch writes the section of one file as v2 wants it: absolute paths without
// a prefix.
func gitPatch(path, oldText, newText string, added bool) string {
	var b strings.Builder
	name := patchPath(path)
	b.WriteString("diff --git " + name + " " + name + "\n")
	if added {
		b.WriteString("new file mode 100644\n--- /dev/null\n")
	} else {
		b.WriteString("--- " + name + "\n")
	}
	b.WriteString("+++ " + name + "\n")
	olds, news := lines(oldText), lines(newText)
	head := 0
	for head < len(olds) && head < len(news) && olds[head] == news[head] {
		head++
	}
	tail := 0
	for tail < len(olds)-head && tail < len(news)-head && olds[len(olds)-1-tail] == news[len(news)-1-tail] {
		tail++
	}
	if head == len(olds) && head == len(news) {
		return b.String()
	}
	from := max(head-patchContext, 0)
	after := min(tail, patchContext)
	oldEnd, newEnd := len(olds)-tail, len(news)-tail
	b.WriteString("@@ -" + hunkRange(from, oldEnd+after) + " +" + hunkRange(from, newEnd+after) + " @@\n")
	writeLines(&b, ' ', olds[from:head])
	writeLines(&b, '-', olds[head:oldEnd])
	writeLines(&b, '+', news[head:newEnd])
	writeLines(&b, ' ', olds[oldEnd:oldEnd+after])
	return b.String()
}

// patchPath quotes a path as Git does where it must.
func patchPath(path string) string {
	if strings.ContainsAny(path, "\"\\\n\t\r") {
		return strconv.Quote(path)
	}
	return path
}

func hunkRange(from, to int) string {
	n := to - from
	if n > 0 {
		from++
	}
	return strconv.Itoa(from) + "," + strconv.Itoa(n)
}

// lines splits text behind each newline; the last may have none.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	l := strings.SplitAfter(text, "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}

func writeLines(b *strings.Builder, mark byte, lines []string) {
	for _, l := range lines {
		b.WriteByte(mark)
		b.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// diffToV1 makes v1's diffs of v2's: one for each hunk of a Git patch. A change
// without one, or a patch in a format that is not Git's, is told in words.
func diffToV1(item []byte) [][]byte {
	var items [][]byte
	patch := get(item, "patch")
	text := getStr(patch, "text")
	format := getStr(patch, "format")
	told := map[string]bool{}
	if format == "git_patch" {
		for _, h := range parsePatch(text) {
			told[h.path] = true
			items = append(items, h.item(item))
		}
	}
	eachItem(get(item, "changes"), func(s gladhand.Span) bool {
		change := get(item, "changes")[s.Start:s.End]
		path, from := getStr(change, "path"), getStr(change, "oldPath")
		if from != "" || !told[path] {
			items = append(items, contentItem(changeInWords(change, from, path)))
		}
		return true
	})
	if text != "" && format != "git_patch" {
		items = append(items, contentItem(text))
	}
	return items
}

func changeInWords(change []byte, from, path string) string {
	op := getStr(change, "operation")
	verb, ok := map[string]string{"add": "Added", "delete": "Deleted", "modify": "Changed", "move": "Moved", "copy": "Copied"}[op]
	if !ok {
		verb = op
	}
	if from != "" {
		return verb + " " + from + " to " + path
	}
	return verb + " " + path
}

// hunk is one hunk of a patch as two texts.
type hunk struct {
	path     string
	added    bool
	old, new []byte
	// onOld and onNew say on which sides the last line stands.
	onOld, onNew bool
}

// item is the hunk as v1's diff, with the other members of the v2 one.
func (h *hunk) item(diff []byte) []byte {
	return rewrite(diff, func(name string, val []byte) (string, []byte) {
		switch name {
		case "changes", "patch", "path", "oldText", "newText":
			return name, nil
		}
		return name, val
	}, func(o *object) {
		o.str("path", h.path)
		if !h.added {
			o.str("oldText", string(h.old))
		}
		o.str("newText", string(h.new))
	})
}

// parsePatch reads the hunks of a Git patch. It takes what it understands; lines
// between hunks other than file names are passed over.
func parsePatch(text string) []*hunk {
	var hunks []*hunk
	var from, to string
	oldLeft, newLeft := 0, 0
	for _, line := range lines(text) {
		if oldLeft > 0 || newLeft > 0 {
			o, n := hunks[len(hunks)-1].take(line)
			oldLeft, newLeft = oldLeft-o, newLeft-n
			continue
		}
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(bare, "--- "):
			from = unquotePath(bare[4:])
		case strings.HasPrefix(bare, "+++ "):
			to = unquotePath(bare[4:])
		case strings.HasPrefix(bare, "@@ "):
			oldLeft, newLeft = hunkSizes(bare)
			h := &hunk{path: to, added: from == "/dev/null"}
			if to == "/dev/null" {
				h.path = from
			}
			hunks = append(hunks, h)
		case strings.HasPrefix(bare, `\`) && len(hunks) > 0:
			hunks[len(hunks)-1].take(line)
		}
	}
	return hunks
}

// take puts a line on the sides it stands on, and counts them. A context line
// that is empty may have lost its space.
func (h *hunk) take(line string) (olds, news int) {
	text := line[1:]
	switch line[0] {
	case '\\':
		if h.onOld {
			h.old = bytes.TrimSuffix(h.old, []byte("\n"))
		}
		if h.onNew {
			h.new = bytes.TrimSuffix(h.new, []byte("\n"))
		}
		return 0, 0
	case '-':
		h.onOld, h.onNew = true, false
	case '+':
		h.onOld, h.onNew = false, true
	case ' ':
		h.onOld, h.onNew = true, true
	default:
		h.onOld, h.onNew = true, true
		text = line
	}
	if h.onOld {
		h.old = append(h.old, text...)
		olds = 1
	}
	if h.onNew {
		h.new = append(h.new, text...)
		news = 1
	}
	return olds, news
}

// hunkSizes reads how many lines a hunk has on each side: "@@ -1,3 +1,4 @@".
func hunkSizes(line string) (olds, news int) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return 0, 0
	}
	return rangeSize(f[1]), rangeSize(f[2])
}

func rangeSize(r string) int {
	_, size, ok := strings.Cut(r, ",")
	if !ok {
		return 1
	}
	n, err := strconv.Atoi(size)
	if err != nil {
		return 0
	}
	return n
}

func unquotePath(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	if p, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		return p
	}
	return s
}
