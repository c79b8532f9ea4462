package mcp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gladhand/tool"
)

// What the manual says of limits is so.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("| servers of a session | %d |", maxServers),
		fmt.Sprintf("| tools of one server, of all | %d, %d:", maxPerServer, maxTools),
		fmt.Sprintf("| start, with the list of tools | %v; the first prompt waits %v ", startLimit, startWait),
		fmt.Sprintf("| one message | %d MiB:", maxMessage>>20),
		fmt.Sprintf("| %d KiB; %d KiB, and a schema", maxDescription>>10, maxSchema>>10),
		fmt.Sprintf("| a result | %d KiB of text, head and tail of what is longer; %d images", tool.MaxResult>>10, maxImages),
		fmt.Sprintf("| questions of a server to us | %d at a time |", maxAsking),
		fmt.Sprintf("after %v a signal, after %v more", standard.grace, standard.grace),
		fmt.Sprintf("such as `\"5m\"`; %v by default", callTimeout),
		fmt.Sprintf("it printed over %d lines", maxStray),
		fmt.Sprintf("cut to %d characters", maxToolName),
		map[int]string{3: "at most three times in a session, after a pause of 1, 2 and 4"}[maxRestarts],
	} {
		text := strings.NewReplacer("1m0s", "60 s", "30s", "30 s", "5s", "5 s", "2s", "2 s").Replace(want)
		if !strings.Contains(string(b), text) {
			t.Errorf("the manual does not say %q", text)
		}
	}
}
