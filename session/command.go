package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gladhand"
	"gladhand/acp"
)

// command is a prompt that begins with a slash: the session runs it itself, in a
// turn of its own, and no agent or model sees it.
type command struct {
	name string
	hint string // what may follow, for clients that show it
	doc  string
	// run does it with the rights of the one who sent it. It returns what to say.
	run func(ctx context.Context, t *turn, args string) (string, error)
}

// commands are listed in the order in which people see them. It is a function
// since one of them shows the list.
func commands() []command {
	return []command{
		{"help", "", "Lists these commands", help},
		{"model", "[NAME [EFFORT]]", "Shows or changes the session's model, and how hard it thinks", chooseModel},
		{"mode", "[ask|edits|plan]", "Shows or changes what happens without asking", chooseMode},
		{"compact", "", "Shortens what the model is given of this session; what people see stays", compact},
		{"title", "TEXT", "Names the session", retitle},
	}
}

// Compacter is an agent that can shorten the context of its model on demand.
type Compacter interface {
	// Compact does it within a turn, and says what came of it.
	Compact(context.Context, gladhand.Turn) (string, error)
}

// CommandsUpdate is ACP's available_commands_update, of the version, of what every
// session knows.
func CommandsUpdate(version int) json.RawMessage {
	var list []acp.Command
	for _, c := range commands() {
		list = append(list, acp.Command{Name: c.name, Description: c.doc, Hint: c.hint})
	}
	return acp.AvailableCommands(version, list)
}

func findCommand(name string) (command, error) {
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		names = append(names, "/"+c.name)
	}
	return command{}, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid,
		"there is no command /%s; there are %s. To send it as text, begin with a blank", name, strings.Join(names, ", ")).With("known", names)
}

// checkCommand refuses a prompt that looks like a command and is none.
func checkCommand(content json.RawMessage) error {
	name, _, ok := acp.ParseCommand(content)
	if !ok {
		return nil
	}
	_, err := findCommand(name)
	return err
}

// command runs a prompt that is a command, to the end of its turn.
func (t *turn) command(name, args string) (gladhand.StopReason, error) {
	c, err := findCommand(name)
	if err != nil {
		return "", err
	}
	said, err := c.run(t.ctx, t, args)
	if err != nil {
		return "", err
	}
	return gladhand.StopEndTurn, t.Emit(t.ctx, acp.MessageChunk(gladhand.NewID(), said))
}

func help(_ context.Context, _ *turn, _ string) (string, error) {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "/%s: %s\n", strings.TrimSpace(c.name+" "+c.hint), c.doc)
	}
	b.WriteString("Anything else is for the agent.")
	return b.String(), nil
}

func chooseModel(_ context.Context, t *turn, args string) (string, error) {
	s, who := t.s, t.Prompt().By
	words := strings.Fields(args)
	switch {
	case len(words) == 0:
		return s.modelsText(), nil
	case len(words) > 2:
		return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "/model takes a model and perhaps an effort")
	}
	if _, err := s.SetOption(who, OptionModel, words[0]); err != nil {
		return "", err
	}
	if len(words) == 2 {
		if _, err := s.SetOption(who, OptionEffort, words[1]); err != nil {
			return "", err
		}
	}
	in := s.Info()
	return strings.TrimSpace(fmt.Sprintf("The next turn uses %s %s", in.Model, effortText(in.Effort))) + ".", nil
}

func effortText(effort string) string {
	if effort == "" {
		return ""
	}
	return "with effort " + effort
}

// modelsText says which model is in use and which could be.
func (s *Session) modelsText() string {
	in := s.Info()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace("This session uses "+in.Model+" "+effortText(in.Effort)))
	for _, c := range s.opts.Models.Choices() {
		mark := " "
		if c.ID == in.Model {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %s", mark, c.ID)
		if efforts := s.opts.Models.Efforts(c.ID); len(efforts) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(efforts, ", "))
		}
		b.WriteByte('\n')
	}
	b.WriteString("/model NAME changes it; `gladhand models` says why others are not here.")
	return b.String()
}

func chooseMode(_ context.Context, t *turn, args string) (string, error) {
	if args == "" {
		in := t.Info()
		for _, m := range modes {
			if m.ID == in.Mode {
				return fmt.Sprintf("The mode is %s: %s.", m.ID, lowerFirst(m.Description)), nil
			}
		}
	}
	if _, err := t.s.SetOption(t.Prompt().By, OptionMode, args); err != nil {
		return "", err
	}
	return "The mode is " + args + ".", nil
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func compact(ctx context.Context, t *turn, _ string) (string, error) {
	agent, err := t.s.agentFor(ctx)
	if err != nil {
		return "", err
	}
	c, ok := agent.(Compacter)
	if !ok {
		return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonUnsupported, "the agent %s keeps its context itself", t.Info().Agent)
	}
	return c.Compact(ctx, t)
}

// titleMax is how many characters a title may have.
const titleMax = 200

func retitle(ctx context.Context, t *turn, args string) (string, error) {
	if err := t.Prompt().By.May(gladhand.Configure); err != nil {
		return "", err
	}
	title := strings.Join(strings.Fields(args), " ")
	if n := len([]rune(title)); n == 0 || n > titleMax {
		return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "a title has 1 to %d characters", titleMax).With("limit", titleMax)
	}
	if err := t.Emit(ctx, acp.SessionTitle(title)); err != nil {
		return "", err
	}
	return "The session is called “" + title + "”.", nil
}
