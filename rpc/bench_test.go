package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func payload(n int) json.RawMessage {
	return json.RawMessage(`{"sessionId":"abcdefghij234567","text":"` + strings.Repeat("x", n) + `"}`)
}

// percentile50 runs f b.N times and reports the median time of one.
func percentile50(b *testing.B, f func()) {
	b.Helper()
	times := make([]time.Duration, b.N)
	for i := range times {
		start := time.Now()
		f()
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
}

// BenchmarkEcho is the floor: raw lines over a Unix socket, two goroutines.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{256, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			server, client := unixPair(b)
			defer client.Close()
			go func() {
				defer server.Close()
				in := bufio.NewReaderSize(server, 64<<10)
				for {
					line, err := readLine(in)
					if err != nil {
						return
					}
					if _, err := server.Write(line); err != nil {
						return
					}
				}
			}()
			line := []byte(strings.Repeat("x", size) + "\n")
			in := bufio.NewReaderSize(client, 64<<10)
			b.ReportAllocs()
			b.ResetTimer()
			percentile50(b, func() {
				client.Write(line)
				if _, err := readLine(in); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	for err == bufio.ErrBufferFull {
		var more []byte
		line = append([]byte(nil), line...)
		more, err = in.ReadSlice('\n')
		line = append(line, more...)
	}
	return line, err
}

type echoed struct {
	Session string `json:"sessionId"`
	Text    string `json:"text"`
}

// BenchmarkCall is a request with typed params and its response, both ends ours.
func BenchmarkCall(b *testing.B) {
	for _, transport := range []string{"unix", "pipe", "plain"} {
		for _, size := range []int{256, 4 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%d", transport, size), func(b *testing.B) {
				server, client := connect(b, transport, func(_ context.Context, r *Request) {
					var p echoed
					if err := DecodeParams(r.Params, &p); err != nil {
						r.Fail(err)
						return
					}
					r.Reply(p)
				}, nil)
				defer server.Close()
				defer client.Close()
				params := echoed{"abcdefghij234567", strings.Repeat("x", size)}
				ctx := b.Context()
				b.ReportAllocs()
				b.ResetTimer()
				percentile50(b, func() {
					var out echoed
					if err := client.Call(ctx, "echo", params, &out); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
	}
}

// connect returns two running connections.
func connect(t testing.TB, transport string, serve, call func(context.Context, *Request)) (server, client *Conn) {
	t.Helper()
	a, b := transports[transport](t)
	server, client = New(a, Options{Handler: serve}), New(b, Options{Handler: call})
	go server.Run(context.Background())
	go client.Run(context.Background())
	t.Cleanup(func() {
		server.Close()
		client.Close()
		<-server.Done()
		<-client.Done()
	})
	return server, client
}

// BenchmarkParallelCalls is many callers on one connection.
func BenchmarkParallelCalls(b *testing.B) {
	server, client := connect(b, "unix", echoHandler, nil)
	defer server.Close()
	params := payload(200)
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := client.Call(context.Background(), "echo", params, nil); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkNotify is a flood of notifications of 300 bytes over one connection.
func BenchmarkNotify(b *testing.B) {
	for _, transport := range []string{"unix", "plain"} {
		b.Run(transport, func(b *testing.B) {
			var seen atomic.Int64
			done := make(chan struct{})
			server, client := connect(b, transport, func(context.Context, *Request) {
				if seen.Add(1) == int64(b.N) {
					close(done)
				}
			}, nil)
			defer server.Close()
			params := payload(200)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := client.Notify(b.Context(), "session/update", params); err != nil {
					b.Fatal(err)
				}
			}
			<-done
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

// feed is a log in memory that cursors read, as the daemon's connections do.
type feed struct {
	mu     sync.Mutex
	more   *sync.Cond
	events [][]byte
}

// next waits for what follows the cursor.
func (f *feed) next(after int) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	for after == len(f.events) {
		f.more.Wait()
	}
	return f.events[after:len(f.events):len(f.events)]
}

// BenchmarkFanout is one event of 294 bytes to 256 clients: written to each in
// turn, and through 256 cursors. One operation is one event seen by all.
func BenchmarkFanout(b *testing.B) {
	const clients = 256
	event := append(payload(294-52), '\n')
	b.Run("inturn", func(b *testing.B) {
		var seen sync.WaitGroup
		var conns []io.WriteCloser
		for range clients {
			server, client := unixPair(b)
			conns = append(conns, server)
			seen.Go(func() { count(client, int64(b.N*len(event))) })
			defer client.Close()
			defer server.Close()
		}
		b.ResetTimer()
		for range b.N {
			for _, c := range conns {
				if _, err := c.Write(event); err != nil {
					b.Fatal(err)
				}
			}
		}
		seen.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
	for name, single := range map[string]bool{"batches": false, "single": true} {
		b.Run(name, func(b *testing.B) { fanout(b, clients, event, single) })
	}
}

// fanout sends b.N events through cursors, what one wake-up found in one Send or
// each event in its own.
func fanout(b *testing.B, clients int, event []byte, single bool) {
	f := &feed{}
	f.more = sync.NewCond(&f.mu)
	var seen sync.WaitGroup
	for range clients {
		server, client := unixPair(b)
		conn := New(server, Options{})
		go conn.Run(context.Background())
		seen.Go(func() { count(client, int64(b.N*len(event))) })
		defer client.Close()
		defer conn.Close()
		go func() {
			for at := 0; at < b.N; {
				batch := f.next(at)
				at += len(batch)
				for n := len(batch); len(batch) > 0; batch = batch[n:] {
					if single {
						n = 1
					}
					if err := conn.Send(context.Background(), batch[:n]...); err != nil {
						b.Error(err)
						return
					}
				}
			}
		}()
	}
	b.ResetTimer()
	for range b.N {
		f.mu.Lock()
		f.events = append(f.events, event[:len(event)-1])
		f.more.Broadcast()
		f.mu.Unlock()
	}
	seen.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// count reads n bytes.
func count(r io.Reader, n int64) {
	io.CopyN(io.Discard, struct{ io.Reader }{r}, n)
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		frame := []byte(head + `"id":"gh-17","method":"session/update","params":` + string(payload(size)) + `}`)
		b.Run(fmt.Sprint(len(frame)), func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for range b.N {
				if e := parse(frame); e.code != 0 {
					b.Fatal(e.flaw)
				}
			}
		})
	}
}

func BenchmarkDecodeParams(b *testing.B) {
	known := payload(200)
	unknown := json.RawMessage(strings.Replace(string(known), "{", `{"_meta":{"a":1},`, 1))
	for name, raw := range map[string]json.RawMessage{"known": known, "unknown": unknown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				var p echoed
				if err := DecodeParams(raw, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
