package agent_test

import (
	"fmt"
	"testing"

	"gladhand/agent"
	"gladhand/model"
)

func TestTour(t *testing.T) {
	s := newSession(t)
	s.answer = yes
	s.file("go.mod", "module example.com/api\n\ngo 1.26\n\nrequire github.com/x/y v1.2.3\n")
	s.file("main.go", "package main\n\nfunc main() { println(8080) }\n")
	s.file("README.md", "# The API\n\nIt serves things.\n")
	a := agent.New(agent.Options{Model: model.Offline{}})
	for _, p := range []string{
		"read go.mod and tell me the module name",
		"Read go.mod, please.", "raed go.mod", "what's the go version?", "which version of y is required in go.mod?", "show me main.go",
		"list files", "what files are here?", "run go version", "run `echo hi; exit 3`", "run nosuchthing",
		"replace 8080 with 9090 in main.go", "change 9090 to 7070 in main.go and show main.go", "create notes.txt with hello world", "append a second line to notes.txt",
		"write bye to notes.txt", "read notes.txt then run pwd", "read go.mdo", "read readme", "summarize README.md", "how many lines does main.go have?",
		"search for println", "count to 12", "wait 1 second", "help", "what are you?", "make me a sandwich", "say hello there", "git status",
		"create a file called x/y.txt containing \"a b\" and then read x/y.txt", "delete notes.txt", "read nothing.xyz then run pwd", "run the tests", "what can you do?",
		"write a poem about trains", "hello", "thanks!", "how do i configure a real model?", "stop", "run go vet and tell me if it passed",
		"create todo.md with:\n- one\n- two, and three\n", "show lines 1-2 of todo.md", "what is the title of README.md", "tell the api agent that it is done", "list agents",
		"rename main to start in main.go", "copy todo.md to done.md", "", "read main.go and go.mod", "does go.mod mention github?", "add a line \"x: 1\" to conf.yaml and read conf.yaml",
		"tell me what this project is about", "read /etc/hostname", "what does main.go print?", "count from 3 to 5 and say done", "ls", "ls -la", "open the README",
	} {
		reason, err := s.run(a, p)
		fmt.Printf(">>> %s\n%s\n[%s %v]\n\n", p, s.said(), reason, err)
	}
}
