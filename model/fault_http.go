package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errFutile in an [Error]'s chain says that trying again does not help, whatever
// its kind.
var errFutile = errors.New("trying again does not help")

// complaint is what a provider says about a request it does not answer. All
// providers' shapes are read into it.
type complaint struct {
	status  int
	code    string // the most specific one: "context_length_exceeded"
	types   string // the others, joined with spaces
	message string
	wait    time.Duration
}

// has reports whether a code or type is one of these.
func (c complaint) has(names ...string) bool {
	for _, n := range names {
		if c.code == n || strings.Contains(" "+c.types+" ", " "+n+" ") {
			return true
		}
	}
	return false
}

// pattern is compiled when it is first used: starting the binary is to cost
// nothing for it.
func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

// What providers say in words when there is no code for it.
var (
	saysOverflow = pattern(`(?i)prompt is too long|maximum context length|context.?(length|window|size)\b.{0,60}\bexceed|exceed\w*.{0,60}\bcontext.?(length|window|size|limit)|input (token count|length)\b.{0,60}\bexceed|input is too long|too many input tokens|reduce the length of the (messages|input|prompt)|larger than the max|longer than the model|no user query`)
	saysQuota    = pattern(`(?i)credit balance|insufficient (credit|balance|fund|quota)|exceeded your current quota|billing|payment required|out of credits|spend(ing)? limit|\bquota\b.{0,40}\bexceeded`)
	saysKey      = pattern(`(?i)(api|auth\w*)[ _-]?(key|token)\b.{0,40}(invalid|incorrect|not valid|missing|expired|revoked|required)|(invalid|incorrect|missing|no|expired) (api|auth\w*)[ _-]?(key|token)|unauthori[sz]ed|invalid x-api-key`)
	saysModel    = pattern(`(?i)\bmodel\b.{0,80}(not found|does not exist|not exist|not available|not supported|no access|unknown|invalid|deprecated|retired)|(no such|unknown|invalid|unsupported) model|(access to|find|have) (the )?model|no endpoints found`)
	saysOverload = pattern(`(?i)overloaded|at capacity|temporarily unavailable|server (is )?busy|try again later`)
	saysLongTerm = pattern(`(?i)per ?(day|month)|daily|monthly`)
)

// kind is what can be done about c.
func (c complaint) kind() Kind {
	inBody := c.status == 0 || c.status == 200 // said in mid-stream
	switch {
	case c.has("context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"),
		c.status == http.StatusRequestEntityTooLarge,
		c.status != http.StatusTooManyRequests && !c.has("rate_limit_error") && saysOverflow().MatchString(c.message):
		return KindOverflow
	case c.status == http.StatusPaymentRequired,
		c.has("insufficient_quota", "billing_error", "billing_hard_limit_reached", "insufficient_balance", "access_terminated"),
		strings.HasSuffix(c.code, "spend_limit_reached"), c.has("linked_organization_billing_unavailable"):
		return KindQuota
	case c.status == http.StatusUnauthorized,
		c.has("authentication_error", "invalid_api_key", "invalid_authentication_error", "UNAUTHENTICATED", "API_KEY_INVALID", "key_profile_mismatch"),
		c.status != http.StatusTooManyRequests && c.status < 500 && saysKey().MatchString(c.message):
		return KindKey
	case c.status == 529, c.has("overloaded_error", "overloaded", "UNAVAILABLE", "engine_overloaded_error"):
		return KindOverload
	case c.status == http.StatusTooManyRequests, c.has("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED", "rate_limited"):
		// The same words stand for a minute's limit and for money; a short wait that
		// is asked for tells them apart.
		if saysLongTerm().MatchString(c.message+" "+c.types) || saysQuota().MatchString(c.message) && c.wait == 0 {
			return KindQuota
		}
		return KindRate
	case c.has("model_not_found", "model_not_available"),
		c.status == http.StatusNotFound && (c.has("not_found_error", "NOT_FOUND") || strings.Contains(strings.ToLower(c.message), "model")),
		c.status == http.StatusForbidden && strings.Contains(strings.ToLower(c.message), "model"),
		c.status/100 == 4 && saysModel().MatchString(c.message) && !strings.Contains(c.message, "image"):
		return KindModel
	case c.has("unsupported_country_region_territory"):
		return KindRequest
	case c.status == http.StatusForbidden, c.has("permission_error"):
		return KindKey
	case c.status >= 500, c.status == http.StatusRequestTimeout, c.status == http.StatusConflict, c.status == http.StatusTooEarly,
		c.has("api_error", "server_error", "internal_server_error", "timeout_error", "INTERNAL", "DEADLINE_EXCEEDED"),
		inBody && (c.code == "" && c.types == "" || saysOverload().MatchString(c.message)):
		return KindOverload
	case saysQuota().MatchString(c.message) && c.status/100 == 4:
		return KindQuota
	case inBody && c.code != "" && c.code[0] == '5':
		return KindOverload
	}
	return KindRequest
}

// readComplaint reads the error object of any provider; false says that there is
// none in body.
func readComplaint(status int, body []byte) (complaint, bool) {
	c := complaint{status: status}
	var top any
	if json.Unmarshal(body, &top) != nil {
		return c, false
	}
	if list, ok := top.([]any); ok && len(list) > 0 { // Gemini's, when it does not stream events
		top = list[0]
	}
	m, ok := top.(map[string]any)
	if !ok {
		return c, false
	}
	c.read(m)
	for _, inner := range []string{"response", "error"} {
		switch e := m[inner].(type) {
		case map[string]any:
			c.read(e)
			if e, ok := e["error"].(map[string]any); ok {
				c.read(e)
			}
		case string:
			c.message = e
		}
	}
	return c, c.message != "" || c.code != ""
}

// read takes over what an object has; inner objects come later and win.
func (c *complaint) read(m map[string]any) {
	for _, k := range []string{"detail", "message"} {
		switch v := m[k].(type) {
		case string:
			c.message = orElse(v, c.message)
		case nil:
		default:
			b, _ := json.Marshal(v)
			c.message = string(b)
		}
	}
	for _, k := range []string{"type", "status", "reason"} {
		if s, ok := m[k].(string); ok && s != "error" {
			c.types = strings.TrimSpace(c.types + " " + s)
		}
	}
	switch v := m["code"].(type) {
	case string:
		c.code = v
	case float64:
		if c.status == 0 || c.status == http.StatusOK { // OpenRouter: the status, in mid-stream
			c.status = int(v)
		}
	}
	switch d := m["details"].(type) {
	case map[string]any: // Anthropic
		if s, ok := d["error_code"].(string); ok {
			c.code = s
		}
	case []any: // Google
		for _, one := range d {
			one, _ := one.(map[string]any)
			if s, ok := one["retryDelay"].(string); ok {
				c.wait, _ = time.ParseDuration(s)
			}
			if s, ok := one["reason"].(string); ok {
				c.types += " " + s
			}
			violations, _ := one["violations"].([]any)
			for _, v := range violations {
				v, _ := v.(map[string]any)
				c.types += fmt.Sprint(" ", v["quotaId"])
			}
		}
	}
}

// refused makes an error of an answer that is not 200.
func (r *reply) refused() error {
	r.patience = 10 * time.Second
	body, err := r.all(64 << 10)
	if cause := r.ctx.Err(); err != nil && cause != nil {
		return cause
	}
	status := r.http.StatusCode
	if status/100 == 3 {
		to := ""
		if u, err := url.Parse(r.http.Header.Get("Location")); err == nil && u.Host != "" {
			to = " to " + u.Scheme + "://" + u.Host + u.Path
		}
		return &Error{
			Kind: KindRequest, Model: r.e.Name(), Status: status, Err: errFutile,
			Text: r.e.plain(fmt.Sprintf("the server sends requests elsewhere%s (%d)", to, status)),
			Mend: "Set providers." + r.e.Provider + ".url to the final address",
		}
	}
	c, ok := readComplaint(status, body)
	if !ok {
		c.message = strings.TrimSpace(string(body))
	}
	c.wait = max(c.wait, retryAfter(r.http.Header, time.Now()))
	f := r.e.fault(c)
	if !ok && status == http.StatusNotFound {
		f.Kind, f.Err = KindRequest, errFutile
		f.Text = fmt.Sprintf("there is no such service at this address (404)%s", r.e.quote(c.message))
		f.Mend = "Check providers." + r.e.Provider + ".url; that of a server like OpenAI's mostly ends with /v1"
	}
	if !ok && status == http.StatusForbidden { // a provider would say so in JSON
		f.Kind, f.Err = KindRequest, errFutile
		f.Text = "something on the way forbids the request (403)" + r.e.quote(c.message)
		f.Mend = "Check the proxy (`gladhand doctor`) and providers." + r.e.Provider + ".url"
	}
	if r.http.Header.Get("X-Should-Retry") == "false" {
		f.Err = errFutile
	}
	return f
}

// page makes an error of a web page that came instead of a reply.
func (r *reply) page() error {
	r.patience = 10 * time.Second
	body, _ := r.all(64 << 10)
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return &Error{
		Kind: KindRequest, Model: r.e.Name(), Status: r.http.StatusCode, Err: errFutile,
		Text: fmt.Sprintf("a web page came instead of a reply (%d)%s", r.http.StatusCode, r.e.quote(string(body))),
		Mend: "Check the proxy (`gladhand doctor`) and providers." + r.e.Provider + ".url",
	}
}

// complain makes an error of an error object in the body of a good answer.
func (e *Endpoint) complain(body []byte) *Error {
	c, ok := readComplaint(0, body)
	if !ok {
		c.message = string(body)
	}
	return e.fault(c)
}

// fault is c for people.
func (e *Endpoint) fault(c complaint) *Error {
	f := &Error{Kind: c.kind(), Model: e.Name(), Status: c.status, RetryAfter: c.wait}
	what := ""
	switch f.Kind {
	case KindKey:
		what, f.Mend = "the key for "+e.Provider+" is refused", e.keyMend()
	case KindQuota:
		what, f.Mend = "the credit or quota at "+e.Provider+" is used up", "See the billing page of "+e.Provider+", or choose another model with /model"
	case KindModel:
		what, f.Mend = "there is no model "+e.Model+" for this key", "`gladhand models` lists those that can be used"
	case KindOverflow:
		what, f.Mend = "the conversation is longer than the model can take", "Use /compact, or start a new session"
	case KindRate:
		what, f.Mend = "too many requests", "Wait a little, then send the prompt again"
	case KindOverload:
		what, f.Mend = "overloaded", "Send the prompt again later, or choose another model with /model"
		if c.status != 529 && c.status != http.StatusServiceUnavailable && !saysOverload().MatchString(c.message) && !c.has("overloaded_error") {
			what = "the server failed"
		}
	case KindRequest:
		what, f.Mend = "the request is not taken", "If it happens again with the same prompt, start a new session"
		if strings.Contains(strings.ToLower(c.message), "image") {
			what, f.Mend = "an image is not taken", "Go on without it in a new session, or with a model that sees images"
		}
	}
	if c.status > 0 {
		what += fmt.Sprintf(" (%d)", c.status)
	}
	f.Text = what + e.quote(c.message)
	return f
}

// keyMend says where a key is put.
func (e *Endpoint) keyMend() string {
	set := "set providers." + e.Provider + ".key"
	if e.KeyEnv != "" {
		set = "set " + e.KeyEnv + " or providers." + e.Provider + ".key"
	}
	return fmt.Sprintf("Store one with `gladhand models key %s`, or %s; `gladhand models` shows what is found", e.Provider, set)
}

// unreachable makes an error of one before there was an answer.
func (e *Endpoint) unreachable(err error) *Error {
	f := &Error{Kind: KindOffline, Model: e.Name(), Err: e.cleaned(err)}
	host := e.Provider
	if u, perr := url.Parse(e.BaseURL); perr == nil && u.Host != "" {
		host = u.Host
	}
	var (
		dns   *net.DNSError
		op    *net.OpError
		alert tls.AlertError
		cert  *tls.CertificateVerificationError
		auth  x509.UnknownAuthorityError
	)
	isOp := errors.As(err, &op)
	switch {
	case isOp && op.Op == "proxyconnect", strings.Contains(err.Error(), "proxyconnect"), strings.Contains(err.Error(), "socks connect"):
		f.Text, f.Mend = "the proxy cannot be reached: "+e.plain(cause(err)), "Check network.proxy, or HTTPS_PROXY in the daemon's environment"
	case errors.As(err, &dns):
		f.Text, f.Mend = host+" has no address (DNS)", "Check the network, or providers."+e.Provider+".url"
	case errors.Is(err, syscall.ECONNREFUSED), refusedOnWindows(err):
		f.Text, f.Mend = host+" refuses connections", "Is the server running? Check it, or providers."+e.Provider+".url"
	case errors.As(err, &auth), errors.As(err, &cert):
		f.Text, f.Mend = host+" has a certificate that is not trusted", "When a proxy or a private server is meant, set network.ca to its certificate"
		f.Err = errors.Join(errFutile, f.Err)
	case errors.As(err, &alert), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		f.Text, f.Mend = host+" does not speak TLS as we do: "+e.plain(cause(err)), "Check providers."+e.Provider+".url: http or https"
		f.Err = errors.Join(errFutile, f.Err)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		f.Text, f.Mend = host+" does not answer", "Check the network and the proxy (`gladhand doctor`)"
	default:
		f.Text, f.Mend = host+" cannot be reached: "+e.plain(cause(err)), "Check the network and the proxy (`gladhand doctor`)"
	}
	return f
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// refusedOnWindows: WSAECONNREFUSED is no syscall.ECONNREFUSED.
func refusedOnWindows(err error) bool {
	var n syscall.Errno
	return errors.As(err, &n) && n == 10061
}

// cause is err without the URL that package http puts before it.
func cause(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection was closed"
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was reset"
	}
	return err.Error()
}
