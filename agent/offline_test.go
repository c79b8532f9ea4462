package agent_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gladhand"
	"gladhand/agent"
	"gladhand/model"
)

// jobIDs are those of commands in the background.
var jobIDs = regexp.MustCompile(`\bbg_[a-z0-9]+`)

var update = flag.Bool("update", false, "write testdata/offline.txt anew")

// The offline model's conversations, through the real loop and the real tools.
// testdata/offline.txt holds prompts ("> …", "\n" for a line end) and the answers
// to them; lines that begin with "#" set things up:
//
//	# deny REASON      the next prompts' questions are denied
//	# allow            … are allowed (the default)
//	# answer TEXT      … are allowed, and this is what people are said to answer
//	# nobody           … have nobody to answer them
//	# mode MODE
//	# new              a new session, and a new workspace with the files below
func TestOffline(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the answers show a POSIX shell's output")
	}
	path := filepath.Join("testdata", "offline.txt")
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	var s *session
	var a *agent.Agent
	for _, line := range strings.Split(strings.TrimRight(string(script), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			fmt.Fprintf(&got, "%s\n\n", line)
			word, rest, _ := strings.Cut(line[2:], " ")
			switch word {
			case "new":
				s, a = offlineSession(t)
			case "deny":
				s.answer = no(rest)
			case "allow":
				s.answer = yes
			case "answer":
				s.answer = func(a gladhand.Ask) gladhand.Verdict {
					v := yes(a)
					if a.Elicitation != nil {
						v.Answer.Content, _ = json.Marshal(map[string]string{"answer": rest})
					}
					return v
				}
			case "nobody":
				s.answer = nil
			case "mode":
				s.info.Mode = rest
			}
		case strings.HasPrefix(line, "> "):
			reason, err := s.run(a, strings.ReplaceAll(line[2:], `\n`, "\n"))
			if err != nil || reason != gladhand.StopEndTurn {
				t.Errorf("%s: %s, %v", line, reason, err)
			}
			answer := strings.ReplaceAll(s.said(), s.info.Cwd, "$WORK")
			answer = strings.ReplaceAll(answer, "\n\n\n", "\n\n") // a message before a call ends its line
			answer = strings.TrimRight(answer, "\n")
			answer = jobIDs.ReplaceAllString(answer, "bg_ID")
			fmt.Fprintf(&got, "%s\n    %s\n\n", line, strings.TrimRight(strings.ReplaceAll(answer, "\n", "\n    "), " "))
		}
	}
	clean := strings.ReplaceAll(got.String(), "    \n", "\n")
	if *update {
		if err := os.WriteFile(path, []byte(clean), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, have := strings.Split(string(script), "\n"), strings.Split(clean, "\n")
	for i := range max(len(want), len(have)) {
		w, h := "(end)", "(end)"
		if i < len(want) {
			w = want[i]
		}
		if i < len(have) {
			h = have[i]
		}
		if w != h {
			t.Fatalf("line %d: got\n%s\nwant\n%s\n(go test ./agent -run Offline -update writes it anew)", i+1, h, w)
		}
	}
}

func offlineSession(t *testing.T) (*session, *agent.Agent) {
	s := newSession(t)
	s.answer = yes
	s.file("go.mod", "module example.com/api\n\ngo 1.26\n\nrequire github.com/x/y v1.2.3\n")
	s.file("main.go", "package main\n\n// main prints the port.\nfunc main() { println(port) }\n\nconst port = 8080 // not 80\n")
	s.file("README.md", "# The API\n\nIt serves things.\n\nLicense: Apache-2.0\n")
	s.file("web/package.json", "{\n  \"name\": \"front\",\n  \"version\": \"0.3.1\"\n}\n")
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintf(&long, "entry %d\n", i+1)
	}
	s.file("long.log", long.String())
	return s, agent.New(agent.Options{Model: model.Offline{}})
}

// A prompt that is steered in joins what is going on; one that says stop ends it.
func TestOfflineSteered(t *testing.T) {
	for _, c := range []struct{ prompt, steer, want string }{
		{"read go.mod, then count to 3", "and say steered", "1 2 3\n\nsteered"},
		{"run true, then count to 3", "stop", "Stopped. What is done stays done."},
		{"count to 3", "what is the module name?", "1 2 3\n\nThe module name is `example.com/api`"},
	} {
		s, a := offlineSession(t)
		once := false
		s.onEmit = func(u string) error {
			if !once && (strings.Contains(u, "in_progress") || strings.Contains(u, `" 3"`)) {
				once = true
				s.mu.Lock()
				s.steer = []string{c.steer}
				s.mu.Unlock()
			}
			return nil
		}
		if _, err := s.run(a, c.prompt); err != nil {
			t.Fatal(err)
		}
		if got := s.said(); !strings.Contains(got, c.want) || strings.Contains(got, "1 2 3") != strings.Contains(c.want, "1 2 3") {
			t.Errorf("%q + %q: %q", c.prompt, c.steer, got)
		}
	}
}

// After a cancelled turn the offline model does not go on with it.
func TestOfflineForgetsCancelled(t *testing.T) {
	s, a := offlineSession(t)
	tn := s.begin("run true, then read go.mod, then count to 5")
	s.onEmit = func(u string) error {
		if strings.Contains(u, `"completed"`) {
			tn.cancel()
		}
		return nil
	}
	if reason, err := s.drive(a, tn); reason != gladhand.StopCancelled || err != nil {
		t.Fatal(reason, err)
	}
	s.onEmit = nil
	if _, err := s.run(a, "say hello"); err != nil || s.said() != "hello" {
		t.Errorf("%q, %v", s.said(), err)
	}
}
