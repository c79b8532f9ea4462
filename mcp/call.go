package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gladhand"
	"gladhand/tool"
)

// served is a tool of a server.
type served struct {
	p *peer
	e *entry
}

// Spec implements [tool.Tool]. What the server says of the tool's kind is not
// asked: it decides on how a call is shown.
func (t served) Spec() tool.Spec {
	return tool.Spec{Name: t.e.full, Description: t.e.description, Schema: t.e.schema, Kind: "other"}
}

// Title implements [tool.Tool].
func (t served) Title(json.RawMessage) string {
	return shown(t.p.cfg.Name) + ": " + shown(t.e.name)
}

// Prepare implements [tool.Tool]. The server is not asked: looking is already
// using it.
func (t served) Prepare(_ context.Context, _ *tool.Env, args json.RawMessage) (*tool.Call, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if v := jsontext.Value(args); !v.IsValid() || v.Kind() != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	e := t.p.find(t.e.name)
	if e == nil {
		return nil, fmt.Errorf("the MCP server %q does not have the tool %q any more, or is not there", shown(t.p.cfg.Name), shown(t.e.name))
	}
	return &tool.Call{
		Title: t.Title(args),
		Action: gladhand.Action{
			Tool: e.full, Effect: gladhand.EffectRun, Server: t.p.cfg.Name + " " + t.p.print,
			Dir: t.p.set.o.Dir, Confinement: t.p.cfg.where(),
		},
		Digest: func() (string, error) {
			e := t.p.find(t.e.name)
			if e == nil {
				return "", fmt.Errorf("the tool %q is not there any more", shown(t.e.name))
			}
			h := sha256.New()
			for _, s := range []string{"mcp", t.p.cfg.Name, t.p.print, e.full, e.digest, string(args)} {
				fmt.Fprintf(h, "%d:%s", len(s), s)
			}
			return hex.EncodeToString(h.Sum(nil)), nil
		},
		Run: func(ctx context.Context, out *tool.Output) (tool.Result, error) { return t.run(ctx, e, args, out) },
	}, nil
}

// errLate is the cause of a call that took too long.
var errLate = errors.New("time limit")

// run makes the call; e is the tool as it was allowed.
func (t served) run(ctx context.Context, e *entry, args json.RawMessage, out *tool.Output) (tool.Result, error) {
	limit := t.p.cfg.Timeout
	if limit == 0 {
		limit = callTimeout
	}
	defer out.Close()
	within, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	for again := false; ; again = true {
		c, err := t.p.use(within)
		if err == nil {
			if now := t.p.find(e.name); now == nil || now.digest != e.digest {
				return tool.Result{}, errors.New("not done: the server was started again and describes this tool in another way now. Look again and repeat the call")
			}
			var res *sdk.CallToolResult
			var unsent bool
			if res, unsent, err = c.call(within, e.name, args, out); err == nil {
				t.p.answered()
				if res.NeedsInput() {
					return tool.Result{}, fmt.Errorf("the MCP server %q asks for more before it goes on, which is not supported", shown(t.p.cfg.Name))
				}
				return t.result(res), nil
			}
			if unsent && !again {
				t.p.lost(c)
				continue
			}
			err = t.failure(within, c, err)
		}
		switch {
		case ctx.Err() != nil:
			return tool.Result{}, context.Cause(ctx)
		case within.Err() != nil:
			return tool.Result{}, fmt.Errorf("the MCP server %q did not answer within %v and was told to stop. The effect of the call is unknown", shown(t.p.cfg.Name), limit)
		}
		return tool.Result{}, err
	}
}

// failure is why a call failed, for the model.
func (t served) failure(ctx context.Context, c *conn, err error) error {
	name := shown(t.p.cfg.Name)
	if wire := answer(err); wire != nil {
		text := cmp.Or(strings.TrimSpace(wire.Message), fmt.Sprintf("code %d", wire.Code))
		return fmt.Errorf("the MCP server %q answered with an error: %s", name, tool.Cut(t.p.mask.apply(text), tool.MaxResult/2))
	}
	if isEnd(err) { // which is known a moment after its calls have failed
		moment := time.NewTimer(t.p.set.t.grace)
		defer moment.Stop()
		select {
		case <-c.done:
		case <-ctx.Done():
		case <-moment.C:
		}
	}
	select {
	case <-c.done:
		return fmt.Errorf("the MCP server %q was lost in the middle of the call: %s. The effect of the call is unknown", name, t.p.mask.line(c.why()))
	default:
	}
	if c.link != nil {
		if known := c.link.reason(err); known != err {
			return fmt.Errorf("the call to the MCP server %q failed: %s. Its effect is unknown", name, t.p.mask.line(known.Error()))
		}
	}
	// What is left are the SDK's words about a result that it cannot decode.
	t.p.set.o.Log.Warn("an MCP server's answer cannot be used", "server", name, "error", t.p.mask.line(err.Error()))
	return fmt.Errorf("the MCP server %q answered with what is no valid result. The effect of the call is unknown", name)
}

// isEnd reports whether an error may be the end of a connection.
func isEnd(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrClosedPipe, errTooLong, errStray, errAsking}, func(end error) bool { return errors.Is(err, end) })
}

// call sends one call and writes its progress to out. Unsent says of an error
// that the call certainly did not reach the server: the connection was gone
// before, or the server refused it because it does not know the session any more.
func (c *conn) call(ctx context.Context, name string, args json.RawMessage, out *tool.Output) (res *sdk.CallToolResult, unsent bool, err error) {
	token := gladhand.NewID()
	defer c.gate.follow(token, func(line string) { _, _ = out.Write([]byte(line + "\n")) })()
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(token)
	var r receipt
	res, err = c.session.CallTool(context.WithValue(ctx, receiptKey{}, &r), params)
	return res, errors.Is(err, sdk.ErrConnectionClosed) || r.forgot.Load(), err
}
