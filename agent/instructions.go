package agent

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// instructionsMax is how many bytes of one file of instructions are read.
const instructionsMax = 32 << 10

// instructionsName is the file that projects keep instructions for agents in.
const instructionsName = "AGENTS.md"

// instructions are the user's own and the workspace's nearest AGENTS.md, as a part
// of the system text. The workspace's is looked for from cwd upwards to the top of
// its repository; without a repository only in cwd.
func instructions(cwd string, own []string) string {
	var b strings.Builder
	for _, path := range append(own[:len(own):len(own)], nearest(cwd)) {
		if path == "" {
			continue
		}
		if text := readInstructions(path); text != "" {
			fmt.Fprintf(&b, "\n\n# Instructions from %s\n\n%s", path, text)
		}
	}
	return b.String()
}

func nearest(cwd string) string {
	if path := filepath.Join(cwd, instructionsName); isFile(path) {
		return path
	}
	found := ""
	for dir := cwd; ; {
		if path := filepath.Join(dir, instructionsName); found == "" && isFile(path) {
			found = path
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return found
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "" // no repository: what is above cwd is not of this project
		}
		dir = parent
	}
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

func readInstructions(path string) string {
	if !isFile(path) {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, instructionsMax+1))
	if err != nil {
		return ""
	}
	cut := ""
	if len(text) > instructionsMax {
		text, cut = text[:instructionsMax], "\n[the rest is left out]"
	}
	return string(bytes.ToValidUTF8(bytes.TrimSpace(text), []byte("\uFFFD"))) + cut
}
