package model

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"gladhand"
)

// What providers answer instead of a reply, as their documentation and their
// servers have it, and what is made of it.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		kind   Kind
		mend   string
	}{
		{"anthropic key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"r"}`, KindKey, "ACME_KEY"},
		{"anthropic permission", 403, `{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}`, KindKey, "gladhand models"},
		{"anthropic credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`, KindQuota, "billing"},
		{"anthropic billing", 402, `{"type":"error","error":{"type":"billing_error","message":"x"}}`, KindQuota, "billing"},
		{"anthropic spend limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`, KindQuota, "billing"},
		{"anthropic ramp", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"ramp_limit_exceeded"}}}`, KindRate, "Wait"},
		{"anthropic model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, KindModel, "gladhand models"},
		{"anthropic overflow", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`, KindOverflow, "/compact"},
		{"anthropic overflow with output", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again\"}}", KindOverflow, "/compact"},
		{"anthropic size", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, KindOverflow, "/compact"},
		{"anthropic rate", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute"}}`, KindRate, "Wait"},
		{"anthropic overload", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, KindOverload, "later"},
		{"anthropic broken", 500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, KindOverload, "later"},
		{"anthropic timeout", 504, `{"type":"error","error":{"type":"timeout_error","message":"x"}}`, KindOverload, "later"},
		{"anthropic image", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: invalid base64 data"}}`, KindRequest, "image"},
		{"anthropic request", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.3: tool_use ids were found without tool_result blocks"}}`, KindRequest, "new session"},
		{"anthropic temperature", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"temperature: Extra inputs are not permitted"}}`, KindRequest, ""},

		{"openai key", 401, `{"error":{"message":"Incorrect API key provided: sk-xx. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, KindKey, "ACME_KEY"},
		{"openai quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, KindQuota, "billing"},
		{"openai rate", 429, `{"error":{"message":"Rate limit reached for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, KindRate, "Wait"},
		{"openai daily", 429, `{"error":{"message":"Rate limit reached for gpt-x on requests per day (RPD): Limit 200, Used 200, Requested 1.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, KindQuota, "billing"},
		{"openai overflow", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, KindOverflow, "/compact"},
		{"openai model", 404, "{\"error\":{\"message\":\"The model `gpt-x` does not exist or you do not have access to it.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\"}}", KindModel, "gladhand models"},
		{"openai model forbidden", 403, "{\"error\":{\"message\":\"Project `p` does not have access to model `gpt-x`\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\"}}", KindModel, "gladhand models"},
		{"openai country", 403, `{"error":{"message":"Country, region, or territory not supported","type":"request_forbidden","code":"unsupported_country_region_territory"}}`, KindRequest, ""},
		{"openai overload", 503, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error"}}`, KindOverload, "later"},
		{"openai image", 400, `{"error":{"message":"Invalid image.","type":"image_parse_error","param":null,"code":"image_parse_error"}}`, KindRequest, "image"},
		{"openai parameter", 400, `{"error":{"message":"Unsupported parameter: 'foo' is not supported with this model.","type":"invalid_request_error","param":"foo","code":"unsupported_parameter"}}`, KindRequest, ""},

		{"gemini key", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`, KindKey, "ACME_KEY"},
		{"gemini rate", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]`, KindRate, "Wait"},
		{"gemini daily", 429, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`, KindQuota, "billing"},
		{"gemini overflow", 400, `{"error":{"code":400,"message":"The input token count (1300000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, KindOverflow, "/compact"},
		{"gemini model", 404, `{"error":{"code":404,"message":"models/gemini-x is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}`, KindModel, "gladhand models"},
		{"gemini overload", 503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, KindOverload, "later"},

		{"llama.cpp overflow", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, KindOverflow, "/compact"},
		{"llama.cpp loading", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, KindOverload, "later"},
		{"vllm overflow", 400, `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, KindOverflow, "/compact"},
		{"vllm model", 404, "{\"object\":\"error\",\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\",\"param\":null,\"code\":404}", KindModel, "gladhand models"},
		{"fastapi", 422, `{"detail":[{"loc":["body","messages",0],"msg":"field required","type":"value_error.missing"}]}`, KindRequest, ""},
		{"ollama string", 404, `{"error":"model 'llama9' not found"}`, KindModel, "gladhand models"},
		{"ollama truncated", 500, `{"error":"no user query found in messages"}`, KindOverflow, "/compact"}, // R193
		{"groq size", 413, `{"error":{"message":"Request too large for model","type":"tokens","code":"rate_limit_exceeded"}}`, KindOverflow, "/compact"},
		{"openrouter credit", 402, `{"error":{"code":402,"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits"}}`, KindQuota, "billing"},
		{"deepseek balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, KindQuota, "billing"},
		{"mistral", 401, `{"message":"Unauthorized","request_id":"x"}`, KindKey, "ACME_KEY"},

		{"a proxy's page", 502, "<!DOCTYPE html><html><head><style>body{color:red}</style><title>502</title></head><body>\n<h1>Bad Gateway</h1>\x1b[31m nginx\x00</body></html>", KindOverload, "later"},
		{"a proxy refuses", 403, `<html><body><h1>Forbidden by the proxy</h1></body></html>`, KindRequest, "proxy"},
		{"a portal", 200, `<html><body>Please <b>log in</b></body></html>`, KindRequest, "proxy"},
		{"no such address", 404, "404 page not found\n", KindRequest, "providers.acme.url"},
		{"nothing", 400, "", KindRequest, ""},
		{"nothing good", 418, "null", KindRequest, ""},
		{"a timeout", 408, "", KindOverload, "later"},
		{"cloudflare", 522, "error code: 522", KindOverload, "later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
				if strings.HasPrefix(c.body, "<") {
					rw.Header().Set("Content-Type", "text/html; charset=utf-8")
				}
				rw.WriteHeader(c.status)
				_, _ = io.WriteString(rw, c.body)
			})
			_, err := trace(t.Context(), NewOpenAIChat(w.endpoint()), hello())
			var f *Error
			if !errors.As(err, &f) || f.Kind != c.kind || f.Status != c.status || f.Model != "acme/m1" || !strings.Contains(f.Mend, c.mend) || !strings.Contains(f.Text, fmt.Sprint(c.status)) {
				t.Fatalf("%+v", err)
			}
			if strings.ContainsFunc(f.Text, unicode.IsControl) || strings.Contains(f.Text, "<") || strings.Contains(f.Text, "color:red") || len(f.Text) > 700 {
				t.Errorf("%q", f.Text)
			}
			if n := gladhand.CodeOf(err); (c.kind == KindKey) != (n == gladhand.CodeAuthRequired) {
				t.Errorf("code %d", n)
			}
		})
	}
}

// What is quoted is at most 500 bytes, and whole characters.
func TestQuoteIsBounded(t *testing.T) {
	e := Endpoint{Provider: "p"}
	for _, s := range []string{strings.Repeat("x", 100_000), strings.Repeat("語", 1000), "x" + strings.Repeat("語", 1000), strings.Repeat("\xff", 600)} {
		got := e.plain(s)
		if len(got) > 500 || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%d bytes, %q", len(got), got)
		}
	}
	if got := e.plain("a \x1b[31m\u202e\r\n\tb\u0000"); got != "a [31m b" {
		t.Errorf("%q", got)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		want time.Duration
		h    []string
	}{
		{0, nil},
		{1500 * time.Millisecond, []string{"retry-after-ms", "1500", "retry-after", "9"}},
		{9 * time.Second, []string{"retry-after", "9"}},
		{500 * time.Millisecond, []string{"retry-after", "0.5"}},
		{time.Minute, []string{"retry-after", "Tue, 01 Dec 2026 12:01:00 GMT"}},
		{0, []string{"retry-after", "Tue, 01 Dec 2026 11:59:00 GMT"}},
		{0, []string{"retry-after", "-3"}},
		{0, []string{"retry-after", "NaN"}},
		{0, []string{"retry-after", "soon"}},
		{1e7 * time.Second, []string{"retry-after", "1e99"}},
		{6 * time.Minute, []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "1s", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s"}},
		{0, []string{"x-ratelimit-remaining-tokens", "12", "x-ratelimit-reset-tokens", "6m0s"}},
		{30 * time.Second, []string{"anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", "2026-12-01T12:00:30Z"}},
		{time.Hour, []string{"x-ratelimit-remaining", "0", "x-ratelimit-reset", fmt.Sprint(now.Add(time.Hour).UnixMilli())}},
	} {
		h := http.Header{}
		for i := 0; i < len(c.h); i += 2 {
			h.Set(c.h[i], c.h[i+1])
		}
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.h, got, c.want)
		}
	}
}

// The wait of an answer is in its error; X-Should-Retry can forbid another try.
func TestFaultWaits(t *testing.T) {
	w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "7")
		rw.Header().Set("X-Should-Retry", "false")
		rw.WriteHeader(429)
	})
	_, err := trace(t.Context(), NewAnthropic(w.endpoint()), hello())
	var f *Error
	if !errors.As(err, &f) || f.RetryAfter != 7*time.Second || !errors.Is(err, errFutile) {
		t.Errorf("%+v", err)
	}
}

// Servers that cannot be reached.
func TestOffline(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	tls.Config.ErrorLog = nil
	defer tls.Close()
	cut := newWire(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, c := range []struct {
		url, says, mend string
		futile          bool
	}{
		{"http://127.0.0.1:1", "refuses connections", "running", false},
		{"http://no-such-host.invalid", "no address", "network", false},
		{tls.URL, "certificate that is not trusted", "network.ca", true},
		{strings.Replace(plain.URL, "http", "https", 1), "TLS", "http or https", true},
		{cut.URL, "connection was closed", "network", false},
		{"127.0.0.1:1", "not an http", "providers.acme.url", true},
	} {
		e := cut.endpoint()
		e.BaseURL, e.Client = c.url, nil
		_, err := trace(t.Context(), NewAnthropic(e), hello())
		var f *Error
		if !errors.As(err, &f) || f.Kind != KindOffline && f.Kind != KindRequest || !strings.Contains(f.Text, c.says) || !strings.Contains(f.Mend, c.mend) || errors.Is(err, errFutile) != c.futile {
			t.Errorf("%s: %+v", c.url, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than a second", 999 * time.Millisecond: "less than a second", time.Second: "1 s", 3600 * time.Millisecond: "4 s",
		99 * time.Second: "99 s", 2 * time.Minute: "2 min", 2 * time.Hour: "2 h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
