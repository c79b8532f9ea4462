//lint:file-ignore SA1019 servers of today still ask for roots and sampling

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// modeVariable makes the test binary an MCP server.
const modeVariable = "MCP_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		child(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// child is the server's process.
func child(mode string) {
	switch mode {
	case "serve":
		serveStdio()
	case "newest": // knows "initialize" no more
		s := testServer(&sdk.ServerOptions{SupportedProtocolVersions: []string{"2026-07-28"}})
		_ = s.Run(context.Background(), &sdk.StdioTransport{})
	case "banner": // prints what is no message first
		fmt.Println("Welcome to the server!")
		fmt.Println(`{"log":"starting"}`)
		serveStdio()
	case "noisy": // 100 MB on standard error, while serving
		go func() {
			line := bytes.Repeat([]byte("noise "), 10_000)
			for range 100_000_000 / len(line) {
				_, _ = os.Stderr.Write(line)
			}
			_, _ = os.Stderr.WriteString("\nquiet\n")
		}()
		serveStdio()
	case "garbage": // never a line feed
		junk := bytes.Repeat([]byte("x"), 1<<16)
		for {
			if _, err := os.Stdout.Write(junk); err != nil {
				return
			}
		}
	case "chatter": // only what is no message
		for {
			if _, err := fmt.Println("still no message"); err != nil {
				return
			}
		}
	case "silent":
		hang()
	case "dead":
		fmt.Fprintln(os.Stderr, "cannot find "+os.Getenv("SECRET"))
		os.Exit(3)
	case "flaky": // dies at the first start only
		mark := os.Getenv("MARK")
		if _, err := os.Stat(mark); err != nil {
			_ = os.WriteFile(mark, nil, 0o600)
			os.Exit(4)
		}
		serveStdio()
	case "stubborn": // heeds neither the end of its input nor signals, and has a child
		signal.Ignore(syscall.SIGTERM)
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), modeVariable+"=sleep")
		if err := c.Start(); err != nil {
			panic(err)
		}
		_ = os.WriteFile(os.Getenv("MARK"), fmt.Appendf(nil, "%d %d", os.Getpid(), c.Process.Pid), 0o600)
		serveStdio()
		hang()
	case "sleep":
		signal.Ignore(syscall.SIGTERM)
		hang()
	case "asking": // asks and never reads the answers
		fmt.Println(readInitialize())
		for i := 0; ; i++ {
			if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"q%d","method":"roots/list"}`+"\n", i); err != nil {
				return
			}
		}
	case "deaf": // answers initialize and reads nothing any more
		fmt.Println(readInitialize())
		hang()
	case "pages": // a list of tools without an end
		raw(func(method string, id json.RawMessage, _ string) string {
			if method == "tools/list" {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"nextCursor":"more"}}`, id)
			}
			return ""
		})
	case "odd": // lists what cannot be used
		raw(func(method string, id json.RawMessage, _ string) string {
			if method != "tools/list" {
				return ""
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, id, strings.Join([]string{
				`null`, `{"name":"","inputSchema":{"type":"object"}}`, `{"name":"none"}`, `{"name":"text","inputSchema":"x"}`,
				`{"name":"array","inputSchema":{"type":"array"}}`,
				`{"name":"large","inputSchema":{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}}`,
				`{"name":"fits","inputSchema":{"type":"object","description":"` + strings.Repeat("x", maxSchema-len(`{"description":"","type":"object"}`)) + `"}}`,
				`{"name":"twice","inputSchema":{"type":"object"}}`, `{"name":"twice","inputSchema":{"type":"object"}}`,
				`{"name":"a.b","description":"` + strings.Repeat("é", maxDescription) + `","inputSchema":{"type":"object"}}`,
				`{"name":"a_b","description":"bell\u0007 and \u202eturned","inputSchema":{"type":"object"}}`,
				`{"name":"` + strings.Repeat("long", 40) + `","inputSchema":{"type":"object"}}`,
			}, ","))
		})
	case "hostile": // each tool answers in another wrong way
		raw(func(method string, id json.RawMessage, name string) string {
			if method == "tools/list" {
				var tools []string
				for i := range hostile {
					tools = append(tools, fmt.Sprintf(`{"name":"h%d","inputSchema":{"type":"object"}}`, i))
				}
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, id, strings.Join(tools, ","))
			}
			var i int
			if n, _ := fmt.Sscanf(name, "h%d", &i); n == 1 {
				return strings.ReplaceAll(hostile[i], "ID", string(id))
			}
			return ""
		})
	case "many":
		s := sdk.NewServer(&sdk.Implementation{Name: "many", Version: "1"}, nil)
		n := 0
		_, _ = fmt.Sscan(os.Getenv("COUNT"), &n)
		for i := range n {
			s.AddTool(plain(fmt.Sprintf("t%03d", i)), nothing)
		}
		_ = s.Run(context.Background(), &sdk.StdioTransport{})
	}
}

// raw is a server by hand: answer gives the line for a request, "" the usual one.
func raw(answer func(method string, id json.RawMessage, name string) string) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			Method string          `json:"method"`
			ID     json.RawMessage `json:"id"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		out := answer(m.Method, m.ID, m.Params.Name)
		if out == "" && m.Method == "initialize" {
			out = fmt.Sprintf(initialized, m.ID)
		}
		if out != "" {
			fmt.Println(out)
		}
	}
}

// hostile are answers to a call, the call's id being ID. None may end our process;
// the last of each must end the call, one way or another.
var hostile = []string{
	`{"jsonrpc":"2.0","id":ID}`,
	`{"jsonrpc":"2.0","id":ID,"result":null}`,
	`{"jsonrpc":"2.0","id":ID,"result":[]}`,
	`{"jsonrpc":"2.0","id":ID,"result":"text"}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":null,"isError":"yes"}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[null]}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"none"}]}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"image","data":"%%%","mimeType":"image/png"}]}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource"}]}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource","resource":null}]}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"tool_result","content":[{"type":"text","text":"x"}]}]}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\ud800"}],"structuredContent":1e999}}`,
	"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}}",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a"}],"inputRequests":{}}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"password?"}}},"resultType":"input_required"}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`,
	`{"jsonrpc":"2.0","id":ID,"error":null}`,
	`{"jsonrpc":"2.0","id":ID,"error":{}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":1}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"m"}}`,
	`{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"m"},"result":{"content":[]}}`,
	`{"jsonrpc":"1.0","id":ID,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	`{"jsonrpc":"2.0","id":"ID","result":{}}` + "\n" + `{"jsonrpc":"2.0","id":ID.5,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	`[{"jsonrpc":"2.0","method":"notifications/message"},{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]`,
	`[]` + "\n" + `[1]` + "\n" + `null` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"x"}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/progress"}` +
		"\n" + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":7}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	`{"jsonrpc":"2.0","id":1,"method":"roots/list"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"roots/list"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"nonsense"}` +
		"\n" + `{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"elicitation/create"}` +
		"\n" + `{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{"messages":null}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
}

const initialized = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`

// readInitialize reads the first request and returns the answer to it.
func readInitialize() string {
	line, _ := bufio.NewReader(os.Stdin).ReadBytes('\n')
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(line, &m)
	return fmt.Sprintf(initialized, m.ID)
}

func serveStdio() {
	_ = testServer(nil).Run(context.Background(), &sdk.StdioTransport{})
}

func plain(name string) *sdk.Tool {
	return &sdk.Tool{Name: name, Description: "The tool " + name, InputSchema: map[string]any{"type": "object"}}
}

func nothing(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{}, nil
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// testServer has a tool for each thing that can go well or wrong.
func testServer(o *sdk.ServerOptions) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, o)
	var cancelled atomic.Int64
	add := func(name string, h func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		t := plain(name)
		t.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true}
		s.AddTool(t, h)
	}
	add("echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	add("env", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add("pid", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		wd, _ := os.Getwd()
		return text(fmt.Sprintf("%d %s", os.Getpid(), wd)), nil
	})
	add("fail", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("it did not work")
		r.IsError = true
		return r, nil
	})
	add("error", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("refused, the key is " + os.Getenv("SECRET"))
	})
	add("hang", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "hanging"})
		<-ctx.Done()
		cancelled.Add(1)
		return nil, ctx.Err()
	})
	add("ignore", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "ignoring"})
		select {}
	})
	add("cancelled", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(cancelled.Load())), nil
	})
	add("die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "fatal: the key is "+os.Getenv("SECRET"))
		os.Exit(7)
		return nil, nil
	})
	add("huge", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var a struct{ N int }
		_ = json.Unmarshal(r.Params.Arguments, &a)
		return text(strings.Repeat("0123456789abcde\n", a.N/16)), nil
	})
	add("progress", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step\x1b[31m",
			})
		}
		return text("done"), nil
	})
	add("flood", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var a struct{ N int }
		_ = json.Unmarshal(r.Params.Arguments, &a)
		for i := range a.N {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Message: strings.Repeat("flood ", 50),
			})
		}
		return text("flooded"), nil
	})
	add("change", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.RemoveTools("echo")
		s.AddTool(plain("added"), nothing)
		return text("changed"), nil
	})
	add("roots", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		return text(roots.Roots[0].URI), nil
	})
	add("sample", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1})
		return text(fmt.Sprint(err)), nil
	})
	add("elicit", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?"})
		return text(fmt.Sprint(err)), nil
	})
	add("rich", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return rich(), nil })
	return s
}

func pngImage() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2)))
	return b.Bytes()
}

func rich() *sdk.CallToolResult {
	return &sdk.CallToolResult{
		Content: []sdk.Content{
			&sdk.TextContent{Text: "a text"},
			&sdk.ImageContent{MIMEType: "image/jpeg", Data: pngImage()}, // called wrongly
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\nbroken")},
			&sdk.ImageContent{MIMEType: "image/svg+xml", Data: []byte("<svg/>")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")},
			&sdk.ResourceLink{Name: "a link", URI: "file:///x"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///y", Text: "inside"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///z", MIMEType: "application/zip", Blob: []byte("PK")}},
		},
		StructuredContent: map[string]any{"n": 1},
	}
}

// hang is a server that does nothing more: this process is the server, and its test
// ends it. The hour is for one whose test is gone.
func hang() { <-time.After(time.Hour) }
