package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transports make a connected pair; every conformance case runs over each.
var transports = map[string]func(t testing.TB) (server, client io.ReadWriteCloser){
	"pipe": func(testing.TB) (io.ReadWriteCloser, io.ReadWriteCloser) { return Pipe() },
	// The same without TryWrite: every write by the goroutine.
	"plain": func(testing.TB) (io.ReadWriteCloser, io.ReadWriteCloser) {
		a, b := Pipe()
		return struct{ io.ReadWriteCloser }{a}, b
	},
	// One byte a read: every frame arrives in pieces, and so does every rune.
	"bytewise": func(testing.TB) (io.ReadWriteCloser, io.ReadWriteCloser) {
		a, b := Pipe()
		return bytewise{a}, b
	},
	"unix":  unixPair,
	"stdio": stdioPair,
}

type bytewise struct{ io.ReadWriteCloser }

func (b bytewise) Read(p []byte) (int, error) {
	return b.ReadWriteCloser.Read(p[:min(1, len(p))])
}

func unixPair(t testing.TB) (server, client io.ReadWriteCloser) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rpc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		if runtime.GOOS == "windows" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

func stdioPair(t testing.TB) (server, client io.ReadWriteCloser) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return Stdio(r1, w2), Stdio(r2, w1)
}

// echoHandler answers "echo" with its params, "slow" never by itself, and knows
// nothing else. Notifications do nothing.
func echoHandler(_ context.Context, r *Request) {
	switch r.Method {
	case "echo", "":
		if r.Params == nil {
			r.Reply(nil)
			return
		}
		r.Reply(r.Params)
	case "slow":
		go func() {
			<-r.Context().Done()
			r.Fail(context.Cause(r.Context()))
		}()
	default:
		r.Fail(&Error{Code: CodeNoMethod, Message: "no such method"})
	}
}

// served is a Conn that runs, and the raw client side of it.
type served struct {
	t    testing.TB
	conn *Conn
	raw  io.ReadWriteCloser
	in   *bufio.Reader
	run  chan error
}

func serve(t testing.TB, pair func(testing.TB) (io.ReadWriteCloser, io.ReadWriteCloser), o Options) *served {
	t.Helper()
	a, b := pair(t)
	s := &served{t: t, conn: New(a, o), raw: b, in: bufio.NewReaderSize(b, 1<<16), run: make(chan error, 1)}
	go func() { s.run <- s.conn.Run(context.Background()) }()
	t.Cleanup(func() {
		s.conn.Close()
		b.Close()
		<-s.conn.Done()
	})
	return s
}

func (s *served) write(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.raw, text); err != nil {
		s.t.Fatalf("write: %v", err)
	}
}

func (s *served) line() string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	if err != nil {
		s.t.Fatalf("read: %v after %q", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

func (s *served) eof() {
	s.t.Helper()
	if rest, err := io.ReadAll(s.in); err != nil || len(rest) > 0 {
		s.t.Fatalf("want the end, got %.200q, %v", rest, err)
	}
}

const fence = `{"jsonrpc":"2.0","id":"fence","method":"echo"}`

var fenced = `{"jsonrpc":"2.0","id":"fence","result":null}`

// reply is what a case expects: the id and the code of an error, or a result.
type reply struct {
	id     string
	code   int
	result string
}

func refused(code int, id string) []reply { return []reply{{id: id, code: code}} }
func result(id, r string) []reply         { return []reply{{id: id, result: r}} }

const (
	bom  = "\uFEFF"
	head = `{"jsonrpc":"2.0",`
)

func idCase(id string) string { return head + `"id":` + id + `,"method":"echo","params":[]}` }

// conformance is what a peer sends, and all that it gets back; the connection
// goes on after each.
var conformance = []struct {
	name, send string
	want       []reply
}{
	// R115, R116, R117: every id comes back as the bytes it was.
	{"id 0", idCase(`0`), result(`0`, `[]`)},
	{"id negative", idCase(`-1`), result(`-1`, `[]`)},
	{"id minus zero", idCase(`-0`), result(`-0`, `[]`)},
	{"id empty string", idCase(`""`), result(`""`, `[]`)},
	{"id string 0", idCase(`"0"`), result(`"0"`, `[]`)},
	{"id 1.0", idCase(`1.0`), result(`1.0`, `[]`)},
	{"id 1e2", idCase(`1e2`), result(`1e2`, `[]`)},
	{"id 2^53+1", idCase(`9007199254740993`), result(`9007199254740993`, `[]`)},
	{"id of 40 digits", idCase(strings.Repeat("7", 40)), result(strings.Repeat("7", 40), `[]`)},
	{"id string 2^53+1", idCase(`"9007199254740993"`), result(`"9007199254740993"`, `[]`)},
	{"id escaped", idCase(`"\u0041\n"`), result(`"\u0041\n"`, `[]`)},
	{"id not ASCII", idCase(`"猫"`), result(`"猫"`, `[]`)},
	{"id null", idCase(`null`), result(`null`, `[]`)},
	{"id absent", head + `"method":"echo"}`, nil},
	{"id true", idCase(`true`), refused(CodeInvalidRequest, `null`)},
	{"id object", idCase(`{"a":1}`), refused(CodeInvalidRequest, `null`)},
	{"id array", idCase(`[1]`), refused(CodeInvalidRequest, `null`)},

	// R109, R110: not JSON.
	{"junk", `not json`, refused(CodeParse, `null`)},
	{"cut off", `{"jsonrpc":"2.0","id":1,"method":"echo"`, refused(CodeParse, `null`)},
	{"two on a line", fence + fence, refused(CodeParse, `null`)},
	{"trailing comma", head + `"id":1,"method":"echo",}`, refused(CodeParse, `null`)},
	{"single quotes", `{'jsonrpc':'2.0'}`, refused(CodeParse, `null`)},
	{"NaN", head + `"id":1,"method":"echo","params":[NaN]}`, refused(CodeParse, `null`)},
	{"leading zero", head + `"id":01,"method":"echo"}`, refused(CodeParse, `null`)},
	{"raw control", head + "\"id\":1,\"method\":\"a\tb\"}", refused(CodeParse, `null`)},
	{"NUL", "\x00", refused(CodeParse, `null`)},
	{"array cut off", `[1,`, refused(CodeParse, `null`)},
	{"HTTP", "GET / HTTP/1.1\r", refused(CodeParse, `null`)},

	// Invalid UTF-8, and valid UTF-8 that looks dangerous.
	{"latin-1", head + "\"id\":1,\"method\":\"echo\",\"params\":[\"\xe9\"]}", refused(CodeParse, `null`)},
	{"overlong", head + "\"id\":1,\"method\":\"echo\",\"params\":[\"\xc0\x80\"]}", refused(CodeParse, `null`)},
	{"surrogate bytes", head + "\"id\":1,\"method\":\"echo\",\"params\":[\"\xed\xa0\x80\"]}", refused(CodeParse, `null`)},
	{"lone escaped surrogate", head + `"id":1,"method":"echo","params":["\ud83d"]}`, refused(CodeParse, `null`)},
	{"astral", head + `"id":1,"method":"echo","params":["𝄞é猫"]}`, result(`1`, `["𝄞é猫"]`)},
	{"escaped pair", head + `"id":1,"method":"echo","params":["\ud834\udd1e"]}`, result(`1`, `["\ud834\udd1e"]`)},
	{"line separators", head + "\"id\":1,\"method\":\"echo\",\"params\":[\"\u2028\u2029\"]}", result(`1`, "[\"\u2028\u2029\"]")},

	// R112, R113: batches, and values that are no object.
	{"batch empty", `[]`, refused(CodeInvalidRequest, `null`)},
	{"batch of junk", `[1]`, refused(CodeInvalidRequest, `null`)},
	{"batch", `[` + fence + `,` + fence + `]`, refused(CodeInvalidRequest, `null`)},
	{"number", `7`, refused(CodeInvalidRequest, `null`)},
	{"string", `"echo"`, refused(CodeInvalidRequest, `null`)},
	{"null", `null`, refused(CodeInvalidRequest, `null`)},

	// R112, R114: requests that are none.
	{"version missing", `{"id":99,"method":"x"}`, refused(CodeInvalidRequest, `99`)},
	{"version 1.0", `{"jsonrpc":"1.0","id":99,"method":"x"}`, refused(CodeInvalidRequest, `99`)},
	{"version number", `{"jsonrpc":2.0,"id":99,"method":"x"}`, refused(CodeInvalidRequest, `99`)},
	{"version escaped", `{"jsonrpc":"\u0032.0","id":99,"method":"echo","params":{}}`, result(`99`, `{}`)},
	{"method number", head + `"id":"a","method":7}`, refused(CodeInvalidRequest, `"a"`)},
	{"method null", head + `"id":5,"method":null}`, refused(CodeInvalidRequest, `5`)},
	{"method missing", head + `"id":5,"params":{}}`, refused(CodeInvalidRequest, `5`)},
	{"method empty", head + `"id":5,"method":""}`, result(`5`, `null`)},
	{"method escaped", head + `"id":5,"method":"ech\u006f"}`, result(`5`, `null`)},
	{"method unknown", head + `"id":5,"method":"nope"}`, refused(CodeNoMethod, `5`)},
	{"params null", head + `"id":5,"method":"echo","params":null}`, refused(CodeInvalidRequest, `5`)},
	{"params string", head + `"id":5,"method":"echo","params":"x"}`, refused(CodeInvalidRequest, `5`)},
	{"params number", head + `"id":5,"method":"echo","params":1}`, refused(CodeInvalidRequest, `5`)},
	{"notification wrong", head + `"method":"echo","params":1}`, refused(CodeInvalidRequest, `null`)},
	{"notification unknown", head + `"method":"nope"}`, nil},

	// Responses: what is wrong is dropped, what nobody waits for too.
	{"response unknown", head + `"id":"gh-99","result":1}`, nil},
	{"response null id", head + `"id":null,"error":{"code":-32700,"message":"m"}}`, nil},
	{"response null result", head + `"id":1,"result":null}`, nil},
	{"response both", head + `"id":1,"result":1,"error":{"code":1,"message":"m"}}`, nil},
	{"response no id", head + `"result":1}`, nil},
	{"response id object", head + `"id":{},"result":1}`, nil},
	{"response no version", `{"id":1,"result":1}`, nil},
	{"response error string", head + `"id":1,"error":"boom"}`, nil},
	{"response error null", head + `"id":1,"error":null}`, nil},
	{"response duplicate", head + `"id":1,"result":1,"result":2}`, nil},
	{"response case", head + `"id":1,"Id":1,"result":1}`, nil},

	// Direction unclear.
	{"only version", `{"jsonrpc":"2.0"}`, refused(CodeInvalidRequest, `null`)},
	{"empty", `{}`, refused(CodeInvalidRequest, `null`)},
	{"only id", head + `"id":1}`, refused(CodeInvalidRequest, `null`)},
	{"method and result", head + `"id":1,"method":"echo","result":1}`, refused(CodeInvalidRequest, `null`)},
	{"method and error", head + `"id":1,"method":"echo","error":{}}`, refused(CodeInvalidRequest, `null`)},

	// Names twice, at any depth and however written; names in another case.
	{"twice method", head + `"id":1,"method":"echo","method":"echo"}`, refused(CodeInvalidRequest, `1`)},
	{"twice escaped", head + `"id":1,"method":"echo","\u006dethod":"echo"}`, refused(CodeInvalidRequest, `1`)},
	{"twice id", head + `"id":1,"id":2,"method":"echo"}`, refused(CodeInvalidRequest, `null`)},
	{"twice id, equal", head + `"id":1,"id":1,"method":"echo"}`, refused(CodeInvalidRequest, `null`)},
	{"twice unknown", head + `"id":1,"method":"echo","x":1,"x":1}`, refused(CodeInvalidRequest, `1`)},
	{"twice deep", head + `"id":1,"method":"echo","params":{"a":[{"b":1,"b":2}]}}`, refused(CodeInvalidRequest, `1`)},
	{"twice, not JSON", head + `"id":1,"id":1,"method":`, refused(CodeParse, `null`)},
	{"twice in a batch", `[{"a":1,"a":2}]`, refused(CodeInvalidRequest, `null`)},
	{"case Method", head + `"id":1,"Method":"x","method":"echo"}`, refused(CodeInvalidRequest, `1`)},
	{"case ID", head + `"id":1,"ID":2,"method":"echo"}`, refused(CodeInvalidRequest, `1`)},
	{"case PARAMS", head + `"id":1,"method":"echo","PARAMS":{}}`, refused(CodeInvalidRequest, `1`)},
	{"case long s", head + `"id":1,"method":"echo","param` + "ſ" + `":{}}`, refused(CodeInvalidRequest, `1`)},
	{"case escaped", head + `"id":1,"method":"echo","\u0050arams":{}}`, refused(CodeInvalidRequest, `1`)},
	{"case in params", head + `"id":1,"method":"echo","params":{"Id":1,"id":2}}`, result(`1`, `{"Id":1,"id":2}`)},
	{"unknown member", head + `"id":1,"method":"echo","_meta":{},"trace":1}`, result(`1`, `null`)},

	// Depth.
	{"depth 499", deepEcho(498), result(`1`, strings.Repeat("[", 498)+strings.Repeat("]", 498))},
	{"depth 501", deepEcho(500), refused(CodeInvalidRequest, `1`)},
	{"depth 20001", deepEcho(20000), refused(CodeParse, `null`)},
	{"depth in a string", head + `"id":1,"method":"echo","params":["\"` + strings.Repeat("[", 600) + `"]}`, result(`1`, `["\"`+strings.Repeat("[", 600)+`"]`)},
	{"wide", head + `"id":1,"method":"echo","params":[` + strings.Repeat("[],", 600) + `[]]}`, result(`1`, `[`+strings.Repeat("[],", 600)+`[]]`)},

	// Lines.
	{"CRLF", idCase("1") + "\r", result(`1`, `[]`)},
	{"spaces around", "  \t" + idCase("1") + " \t ", result(`1`, `[]`)},
	{"blank lines", "\n\r\n  \n" + idCase("1") + "\n\n", result(`1`, `[]`)},
	{"BOM in mid-stream", bom + idCase("1"), refused(CodeParse, `null`)},
	{"order of members", `{"params":[1],"method":"echo","id":1,"jsonrpc":"2.0"}`, result(`1`, `[1]`)},
	{"three in one write", idCase("1") + "\n" + `junk` + "\n" + idCase("2"), []reply{{"1", 0, "[]"}, {"null", CodeParse, ""}, {"2", 0, "[]"}}},

	// R104: lengths around the usual buffers.
	{"64Ki-1", sized(1<<16 - 1), result(`1`, "")},
	{"64Ki", sized(1 << 16), result(`1`, "")},
	{"64Ki+1", sized(1<<16 + 1), result(`1`, "")},
	{"4Ki", sized(1 << 12), result(`1`, "")},

	// Cancelling.
	{"cancel unknown", head + `"method":"$/cancel_request","params":{"requestId":77}}`, nil},
	{"cancel without id", head + `"method":"$/cancel_request","params":{}}`, nil},
	{"cancel as a request", head + `"id":3,"method":"$/cancel_request","params":{"requestId":77}}`, result(`3`, `null`)},
	// R023: the cancellation is not behind the request it cancels.
	{"cancel", head + `"id":"s","method":"slow"}` + "\n" + head + `"method":"$/cancel_request","params":{"requestId":"s"}}`, refused(CodeCancelled, `"s"`)},
}

func deepEcho(n int) string {
	return head + `"id":1,"method":"echo","params":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
}

// sized is an echo request of n bytes.
func sized(n int) string {
	frame := head + `"id":1,"method":"echo","params":[""]}`
	return strings.Replace(frame, `[""]`, `["`+strings.Repeat("x", n-len(frame))+`"]`, 1)
}

// message is a frame as the tests look at it.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *Error          `json:"error"`
}

func parseMessage(t testing.TB, line string) message {
	t.Helper()
	var m message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%.200q: %v", line, err)
	}
	if m.Version != "2.0" {
		t.Fatalf("%.200q: no version", line)
	}
	return m
}

func TestConformance(t *testing.T) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			s := serve(t, pair, Options{Handler: echoHandler})
			for _, tc := range conformance {
				ok := t.Run(tc.name, func(t *testing.T) {
					s.t = t
					go io.WriteString(s.raw, tc.send+"\n")
					for _, want := range tc.want {
						m := parseMessage(t, s.line())
						if string(m.ID) != want.id {
							t.Errorf("id %s, want %s", m.ID, want.id)
						}
						switch {
						case want.code != 0:
							if m.Error == nil || m.Error.Code != want.code || m.Error.Message == "" || m.Result != nil {
								t.Errorf("want error %d, got %+v, result %s", want.code, m.Error, m.Result)
							}
						case m.Error != nil:
							t.Errorf("refused: %v", m.Error)
						case want.result == "" && len(m.Result) < 4000, want.result != "" && string(m.Result) != want.result:
							t.Errorf("result %.200s, want %.200s", m.Result, want.result)
						}
					}
					// Nothing else came, and the connection goes on.
					s.write(fence + "\n")
					if got := s.line(); got != fenced {
						t.Errorf("behind it %.200q, want the fence", got)
					}
				})
				if !ok {
					s.t = t
					t.Fatalf("the connection may be out of step")
				}
			}
			s.raw.Close()
			if err := <-s.run; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// One byte order mark at the very start is tolerated, and so is a last line
// without its end.
func TestStartAndEnd(t *testing.T) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			s := serve(t, pair, Options{Handler: echoHandler})
			s.write(bom + idCase("1") + "\n" + idCase("2"))
			closeWrite(t, s.raw)
			for _, want := range []string{"1", "2"} {
				if m := parseMessage(t, s.line()); string(m.ID) != want {
					t.Errorf("id %s, want %s", m.ID, want)
				}
			}
			s.eof()
			if err := <-s.run; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// closeWrite ends what rwc sends and leaves what it reads.
func closeWrite(t testing.TB, rwc io.ReadWriteCloser) {
	t.Helper()
	switch s := rwc.(type) {
	case interface{ CloseWrite() error }:
		s.CloseWrite()
	case *stdio:
		s.w.Close()
	default:
		t.Fatalf("%T cannot be closed by half", rwc)
	}
}

// A line of the limit passes, of one more ends the connection with one error;
// what follows is never looked at.
func TestFrameLimit(t *testing.T) {
	for name, pair := range transports {
		limit := 100_000
		if name == "bytewise" {
			limit = 5000
		}
		for _, over := range []int{-1, 0, 1, 5000} {
			for _, end := range []string{"\n", "\r\n"} {
				t.Run(fmt.Sprintf("%s/limit%+d%q", name, over, end), func(t *testing.T) {
					s := serve(t, pair, Options{Handler: echoHandler, Limits: Limits{Frame: limit}})
					go io.WriteString(s.raw, sized(limit+over)+end+idCase("2")+"\n")
					if over <= 0 {
						for _, want := range []string{"1", "2"} {
							if m := parseMessage(t, s.line()); string(m.ID) != want || m.Error != nil {
								t.Errorf("id %s, want %s, error %v", m.ID, want, m.Error)
							}
						}
						return
					}
					want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is larger than a frame may be","data":{"reason":"frame_too_large","limit_bytes":` + fmt.Sprint(limit) + `}}}`
					if got := s.line(); got != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
					s.eof()
					if err := <-s.run; err == nil {
						t.Error("Run returned nil")
					}
				})
			}
		}
	}
}

// eventually polls a condition that another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		runtime.Gosched()
	}
}
