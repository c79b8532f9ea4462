package model

import (
	"bufio"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// R191, R192: which proxy an address is reached through.
func TestProxyFunc(t *testing.T) {
	e := env("HTTPS_PROXY", "http://envproxy:1", "http_proxy", "envplain:2", "NO_PROXY", "corp.example, .sub.example,10.0.0.0/8,192.168.1.7,[fd00::1]:8443,odd.example:444,*.star.example")
	for _, c := range []struct {
		proxy string
		no    []string
		to    string
		want  string
	}{
		{"", nil, "https://api.anthropic.com/v1", "http://envproxy:1"},
		{"", nil, "http://plain.example/", "http://envplain:2"},
		{"", nil, "https://corp.example/", ""},
		{"", nil, "https://a.corp.example/", ""},
		{"", nil, "https://CORP.example./", ""},
		{"", nil, "https://notcorp.example/", "http://envproxy:1"},
		{"", nil, "https://sub.example/", "http://envproxy:1"},
		{"", nil, "https://a.sub.example/", ""},
		{"", nil, "https://star.example/", "http://envproxy:1"},
		{"", nil, "https://a.star.example/", ""},
		{"", nil, "https://10.1.2.3/", ""},
		{"", nil, "https://11.1.2.3/", "http://envproxy:1"},
		{"", nil, "https://192.168.1.7:99/", ""},
		{"", nil, "https://[fd00::1]:8443/", ""},
		{"", nil, "https://[fd00::1]/", "http://envproxy:1"},
		{"", nil, "https://odd.example/", "http://envproxy:1"},
		{"", nil, "https://odd.example:444/", ""},
		{"", nil, "http://localhost:11434/", ""},
		{"", nil, "http://127.0.0.1:1/", ""},
		{"", nil, "http://[::1]:1/", ""},
		{"", []string{"api.anthropic.com:443"}, "https://api.anthropic.com/", ""},
		{"", []string{"other"}, "https://corp.example/", "http://envproxy:1"},
		{"none", nil, "https://api.anthropic.com/", ""},
		{"proxy.example:3128", nil, "https://corp.example/", "http://proxy.example:3128"},
		{"socks5://proxy.example:1080", nil, "http://a.example/", "socks5://proxy.example:1080"},
		{"http://p:1", []string{"*"}, "https://a.example/", ""},
	} {
		f, err := Network{Proxy: c.proxy, NoProxy: c.no, Getenv: e}.ProxyFunc()
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if p := f(u); p != nil {
			got = p.String()
		}
		if got != c.want {
			t.Errorf("%q %q: %s through %q, want %q", c.proxy, c.no, c.to, got, c.want)
		}
	}
	for proxy, where := range map[string]string{"ftp://x": "network.proxy", "http://a:hunter2secret@%zz": "network.proxy", "http://": "network.proxy"} {
		if _, err := NewHTTPClient(Network{Proxy: proxy}); err == nil || !strings.Contains(err.Error(), where) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", proxy, err)
		}
	}
	if _, err := NewHTTPClient(Network{Getenv: env("HTTPS_PROXY", "ftp://x")}); err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY") {
		t.Errorf("a bad proxy in the environment: %v", err)
	}
}

// connectProxy is a proxy that connects every host to one address.
func connectProxy(t *testing.T, to string, calls *atomic.Int32) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				req, err := http.ReadRequest(r)
				if err != nil || req.Method != http.MethodConnect {
					return
				}
				calls.Add(1)
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer func() { _ = out.Close() }()
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				go func() { _, _ = io.Copy(out, r) }()
				_, _ = io.Copy(c, out)
			}()
		}
	}()
	return l.Addr().String()
}

// R191: a request goes through the proxy of the settings, trusts the settings'
// certificates, speaks HTTP/2, and NO_PROXY leaves the proxy out.
func TestThroughProxy(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: "+r.Proto+"\n\n")
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	proxy := connectProxy(t, srv.Listener.Addr().String(), &calls)

	ask := func(n Network) error {
		c, err := NewHTTPClient(n)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		e := Endpoint{Provider: "p", Model: "m", BaseURL: "https://example.com:9", Client: c} // the test server's certificate is for example.com
		in, err := e.post(t.Context(), e.BaseURL, struct{}{}, nil)
		if err != nil {
			return err
		}
		defer in.Close()
		ev, err := in.next()
		if err == nil && string(ev.data) != "HTTP/2.0" {
			t.Errorf("spoke %q", ev.data)
		}
		return err
	}
	if err := ask(Network{Proxy: "http://" + proxy, CA: ca}); err != nil || calls.Load() != 1 {
		t.Errorf("through the proxy: %v, %d calls", err, calls.Load())
	}
	if err := ask(Network{Getenv: env("HTTPS_PROXY", proxy), CA: ca}); err != nil || calls.Load() != 2 {
		t.Errorf("through the environment's: %v, %d calls", err, calls.Load())
	}
	var f *Error
	if err := ask(Network{Proxy: "http://" + proxy}); !errors.As(err, &f) || f.Kind != KindOffline || !errors.Is(err, errFutile) || !strings.Contains(f.Mend, "network.ca") {
		t.Errorf("without the certificate: %v", err)
	}
	calls.Store(0)
	if err := ask(Network{Proxy: "http://user:hunter2secret@127.0.0.1:1", CA: ca}); !errors.As(err, &f) || f.Kind != KindOffline || !strings.Contains(f.Text, "proxy") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a dead proxy: %v", err)
	}
	direct, err := NewHTTPClient(Network{Proxy: "http://" + proxy, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	e := Endpoint{Provider: "p", Model: "m", BaseURL: srv.URL, Client: direct} // loopback
	in, err := e.post(t.Context(), e.BaseURL, struct{}{}, nil)
	if err != nil || calls.Load() != 0 {
		t.Fatalf("loopback: %v, %d calls", err, calls.Load())
	}
	in.Close()
	direct.CloseIdleConnections()
}

func TestBadCA(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ca := range []string{empty, empty + ".not"} {
		if _, err := NewHTTPClient(Network{CA: ca}); err == nil || !strings.Contains(err.Error(), "network.ca") {
			t.Errorf("%s: %v", ca, err)
		}
	}
}
