package model

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Network is how providers are reached.
type Network struct {
	// Proxy is a URL (http, https, socks5), "none", or empty for what the
	// environment says: HTTPS_PROXY, HTTP_PROXY, NO_PROXY and their lower case.
	Proxy string
	// NoProxy are the hosts that are reached without, as in NO_PROXY: names with
	// everything below them, addresses, networks (10.0.0.0/8), "*", with a port or
	// without. Empty with an empty Proxy is the environment's. Loopback never goes
	// through a proxy.
	NoProxy []string
	// CA is a file of certificates, PEM, that are trusted beside the system's.
	CA string
	// Getenv is the environment; nil is os.Getenv. It is read once, when a client
	// is made.
	Getenv func(string) string
}

// NewHTTPClient returns a client for providers. It waits for no answer by itself:
// an [Endpoint] does. An error says which setting is wrong.
func NewHTTPClient(n Network) (*http.Client, error) {
	proxy, err := n.ProxyFunc()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy:                 func(r *http.Request) (*url.URL, error) { return proxy(r.URL), nil },
		DialContext:           (&net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   20 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
		// Compression would hold a stream's small events back.
		DisableCompression: true,
		// A connection that died while the machine slept is noticed.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	if n.CA != "" {
		pem, err := os.ReadFile(n.CA)
		if err != nil {
			return nil, fmt.Errorf("network.ca: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("network.ca: %s has no certificate in PEM", n.CA)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t}, nil
}

// defaultClient is for endpoints without one.
var defaultClient = sync.OnceValue(func() *http.Client {
	c, err := NewHTTPClient(Network{})
	if err != nil { // the environment's proxy is no URL
		c = &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, err }}}
	}
	return c
})

// ProxyFunc returns what says which proxy a URL is reached through; nil is none.
func (n Network) ProxyFunc() (func(*url.URL) *url.URL, error) {
	getenv := n.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	env := func(name string) string { return orElse(getenv(name), getenv(strings.ToLower(name))) }
	no, secure, plain := n.NoProxy, n.Proxy, n.Proxy
	where := "network.proxy"
	switch n.Proxy {
	case "none":
		return func(*url.URL) *url.URL { return nil }, nil
	case "":
		where = "HTTPS_PROXY or HTTP_PROXY in the environment"
		secure, plain = env("HTTPS_PROXY"), env("HTTP_PROXY")
		if len(no) == 0 {
			no = strings.Split(env("NO_PROXY"), ",")
		}
	}
	httpsProxy, err := parseProxy(secure)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	httpProxy, err := parseProxy(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return func(u *url.URL) *url.URL {
		switch {
		case direct(u, no):
			return nil
		case u.Scheme == "https":
			return httpsProxy
		}
		return httpProxy
	}, nil
}

// parseProxy does not repeat the proxy in its errors: there may be a password in
// it.
func parseProxy(s string) (*url.URL, error) {
	if s == "" {
		return nil, nil
	}
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, errors.New("this is not a URL like http://proxy:3128")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, fmt.Errorf("there are no proxies for %q; use http, https or socks5", u.Scheme)
}

// direct reports whether u is reached without a proxy.
func direct(u *url.URL, no []string) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	port := orElse(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	addr, err := netip.ParseAddr(host)
	isAddr := err == nil
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || isAddr && addr.Unmap().IsLoopback() {
		return true
	}
	for _, rule := range no {
		rule = strings.ToLower(strings.TrimSpace(rule))
		if rule == "*" {
			return true
		}
		if prefix, err := netip.ParsePrefix(rule); err == nil {
			if isAddr && prefix.Contains(addr.Unmap()) {
				return true
			}
			continue
		}
		if h, p, err := net.SplitHostPort(rule); err == nil {
			if p != port {
				continue
			}
			rule = h
		}
		if other, err := netip.ParseAddr(strings.Trim(rule, "[]")); err == nil {
			if isAddr && addr.Unmap() == other.Unmap() {
				return true
			}
			continue
		}
		below := strings.HasPrefix(rule, ".") || strings.HasPrefix(rule, "*.")
		rule = strings.TrimPrefix(strings.TrimPrefix(rule, "*"), ".")
		if rule != "" && (host == rule && !below || strings.HasSuffix(host, "."+rule)) {
			return true
		}
	}
	return false
}
