package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"
)

func envOf(kv ...string) func(string) string {
	return func(k string) string {
		for _, e := range kv {
			if n, v, _ := strings.Cut(e, "="); n == k {
				return v
			}
		}
		return ""
	}
}

func TestPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of Unix")
	}
	for _, c := range []struct {
		flag, data string
		env        []string
		want       string
	}{
		{"", "", []string{"HOME=/h"}, "/h/.config/gladhand/config.jsonc"},
		{"", "", []string{"HOME=/h", "XDG_CONFIG_HOME=/x"}, "/x/gladhand/config.jsonc"},
		{"", "", []string{"HOME=/h", "XDG_CONFIG_HOME=x"}, "/h/.config/gladhand/config.jsonc"},
		{"", "", []string{"HOME=/h", "GLADHAND_DATA_DIR=/d"}, "/d/config.jsonc"},
		{"", "/f", []string{"HOME=/h", "GLADHAND_DATA_DIR=/d"}, "/f/config.jsonc"},
		{"", "/f", []string{"GLADHAND_CONFIG=/c/s.json"}, "/c/s.json"},
		{"/flag", "/f", []string{"GLADHAND_CONFIG=/c/s.json"}, "/flag"},
	} {
		if got := Path(c.flag, envOf(c.env...), c.data); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if p := Path("rel/c.jsonc", envOf(), ""); !filepath.IsAbs(p) || !strings.HasSuffix(p, "/rel/c.jsonc") {
		t.Error(p)
	}
}

func same(a, b Settings) bool { return reflect.DeepEqual(a, b) }

func open(t *testing.T, text string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.jsonc")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := Open(path)
	must(t, err)
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantReason(t *testing.T, err error, want gladhand.Reason) {
	t.Helper()
	if err == nil || gladhand.ReasonOf(err) != want {
		t.Fatalf("got %q (%v), want reason %q", gladhand.ReasonOf(err), err, want)
	}
}

func onDisk(t *testing.T, f *File) string {
	t.Helper()
	b, err := os.ReadFile(f.Path())
	must(t, err)
	return string(b)
}

func set(f *File, prop, value string) error {
	return f.Set(context.Background(), prop, json.RawMessage(value))
}

func TestDefaults(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "none", "config.jsonc"))
	must(t, err)
	if !same(f.Settings(), Defaults()) {
		t.Errorf("%+v", f.Settings())
	}
	items, err := f.List()
	must(t, err)
	if len(items) != len(table) {
		t.Errorf("%d items", len(items))
	}
	for _, it := range items {
		if string(it.Value) != string(it.Default) || it.Doc == "" || it.Set || !json.Valid(it.Value) {
			t.Errorf("%+v", it)
		}
		// A default is a value that may be set.
		if err := set(f, it.Prop, string(it.Default)); err != nil {
			t.Error(err)
		}
	}
	if !same(f.Settings(), Defaults()) {
		t.Errorf("%+v", f.Settings())
	}
	for _, text := range []string{"", " \n", "{}", "\ufeff{}", "{} // end", "{\"$schema\": \"x\",}"} {
		if f := open(t, text); !same(f.Settings(), Defaults()) {
			t.Errorf("%q: %+v", text, f.Settings())
		}
	}
}

func TestReads(t *testing.T) {
	abs := filepath.Join(t.TempDir(), "ca.pem")
	f := open(t, `// mine
{
  "agent": "claude", "model": "offline", "mode": "plan", "profile": "sysadmin",
  "queue": {"max": 256}, /* long */ "asks": {"expiry": "1h30m"},
  "limits": {"connections": 1},
  "stop": {"drain": "0s"},
  "log": {"level": "debug",}, "effort": "high", "steps": {"max": 50}, "compact": {"at": 60},
  "network": {"proxy": "none", "no_proxy": "a,.b", "ca": `+string(quote(abs))+`},
}`)
	want := Settings{
		Agent: "claude", Model: "offline", Effort: "high", Mode: "plan", Profile: "sysadmin",
		Steps:   Steps{50},
		Compact: Compact{60},
		Queue:   Queue{256},
		Asks:    Asks{90 * time.Minute},
		Limits:  Limits{1},
		Stop:    Stop{0},
		Log:     Log{"debug"},
		Network: Network{Proxy: gladhand.PartlySecret("none", "none"), NoProxy: "a,.b", CA: abs},
	}
	if !same(f.Settings(), want) {
		t.Errorf("%+v", f.Settings())
	}
	for prop, v := range map[string]string{"asks.expiry": `"1h30m"`, "queue.max": "256", "stop.drain": `"0s"`} {
		got, err := f.Get(prop)
		if err != nil || string(got) != v {
			t.Errorf("%s: %s %v", prop, got, err)
		}
	}
}

func TestRefusesWithPlaceAndMend(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		says         string
	}{
		{"{\n  \"mode\": \"aks\"\n}", 2, 11, `one of "ask"`},
		{"{\n  \"mode\": \"ask\",\n  \"mode\": \"plan\"}", 3, 3, "twice"},
		{"{\"queue\": {\"max\": 1, \"max\": 2}}", 1, 22, "queue.max"},
		{"{\"queue\": {}, \"queue\": {}}", 1, 15, "twice"},
		{"{\"Mode\": \"ask\"}", 1, 2, `did you mean "mode"`},
		{"{\"queue\": {\"maxx\": 1}}", 1, 12, `did you mean "queue.max"`},
		{"{\"queue.max\": 1}", 1, 2, "object within an object"},
		{"{\"queue\": 1}", 1, 11, "queue.max"},
		{"{\"queue\": {\"max\": 0}}", 1, 19, "from 1 to 256"},
		{"{\"queue\": {\"max\": 257}}", 1, 19, "from 1 to 256"},
		{"{\"queue\": {\"max\": 1.5}}", 1, 19, "whole number"},
		{"{\"queue\": {\"max\": \"1\"}}", 1, 19, "whole number"},
		{"{\"queue\": {\"max\": null}}", 1, 19, "whole number"},
		{"{\"queue\": {\"max\": {\"x\": 1}}}", 1, 19, "whole number"},
		{"{\"asks\": {\"expiry\": \"30\"}}", 1, 21, `"30m"`},
		{"{\"asks\": {\"expiry\": 30}}", 1, 21, `"30m"`},
		{"{\"asks\": {\"expiry\": \"0s\"}}", 1, 21, "from 1s to 168h"},
		{"{\"agent\": \"\"}", 1, 11, "not empty"},
		{"{\"agent\": \"a\\u001bb\"}", 1, 11, "control"},
		{"{\"mode\": null}", 1, 10, "one of"},
		{"{\n \"mode\" \"ask\"}", 2, 9, "not JSON"},
		{"{\n \"mode\": \"ask\"\n", 4, 1, "not JSON"},
		{"[]", 1, 1, "object"},
		{"{\n \"agent\": \"\xff\"}", 2, 12, "UTF-8"},
		{"{\"ü\": 1, \"mode\": 1}", 1, 2, "no setting"},
		{"{/* ü日 */\"mode\": 1}", 1, 18, "one of"}, // columns are characters
		{"{\"whatever\": 1}", 1, 2, "config list"},
		{"{\"compact\": {\"at\": 49}}", 1, 20, "from 50 to 95"},
		{"{\"compact\": {\"at\": 96}}", 1, 20, "from 50 to 95"},
		{"{\"steps\": {\"max\": 0}}", 1, 19, "from 1 to 1000"},
		{"{\"steps\": {\"max\": 1001}}", 1, 19, "from 1 to 1000"},
		{"{\"network\": {\"ca\": \"ca.pem\"}}", 1, 20, "absolute"},
		{"{\"network\": {\"proxy\": \"ftp://x\"}}", 1, 23, "socks5://"},
	} {
		err := Validate([]byte(c.text))
		var e *gladhand.Error
		if !errors.As(err, &e) || e.Reason != gladhand.ReasonInvalid {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if e.Data["line"] != c.line || e.Data["column"] != c.column || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v %v, want %d %d …%s…", c.text, err, e.Data, c.line, c.column, c.says)
		}
		path := filepath.Join(t.TempDir(), "c")
		must(t, os.WriteFile(path, []byte(c.text), 0o600))
		_, err = Open(path)
		if !errors.As(err, &e) || e.Data["line"] != c.line || e.Data["path"] != path || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	for _, deep := range []string{strings.Repeat("[", maxFile), strings.Repeat("{\"a\":", maxFile/5), "/*[*/" + strings.Repeat("[\"\\\"]\",", maxFile/8)} {
		if err := Validate([]byte(deep)); gladhand.ReasonOf(err) != gladhand.ReasonInvalid || !strings.Contains(err.Error(), "deep") {
			t.Errorf("depth: %v", err)
		}
	}
	flat := "{\"model\": \"" + strings.Repeat("[", 100) + "\" /*" + strings.Repeat("[", 100) + "*/ //" + strings.Repeat("{", 100) + "\n}"
	must(t, Validate([]byte(flat)))
	if err := Validate([]byte("{}" + strings.Repeat(" ", maxFile))); gladhand.ReasonOf(err) != gladhand.ReasonInvalid {
		t.Errorf("size: %v", err)
	}
}

func TestUnknownProp(t *testing.T) {
	f := open(t, "{}")
	for prop, says := range map[string]string{
		"queue.maks": `"queue.max"`, "expiry": `"asks.expiry"`, "queue": "name one of queue.max",
		"": "config list", "mdoe": `"mode"`, "LOG.LEVEL": `"log.level"`, "$schema": "config list",
	} {
		_, err := f.Get(prop)
		wantReason(t, err, gladhand.ReasonInvalid)
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", prop, err)
		}
		wantReason(t, set(f, prop, "1"), gladhand.ReasonInvalid)
	}
	if onDisk(t, f) != "{}" {
		t.Error("written")
	}
}

// A change keeps every byte that is not the value's.
func TestSetKeepsTheRest(t *testing.T) {
	for _, c := range []struct{ name, before, prop, value, after string }{
		{
			"replaced", "// top\n{\n\t\"mode\" : /* a */ \"ask\" /* b */ , // c\n\t\"model\":\"\"\n}\n// end",
			"mode", `"plan"`, "// top\n{\n\t\"mode\" : /* a */ \"plan\" /* b */ , // c\n\t\"model\":\"\"\n}\n// end",
		},
		{
			"in a group", "{\"queue\": {\n  // many\n  \"max\": 1 }}", "queue.max", "20",
			"{\"queue\": {\n  // many\n  \"max\": 20 }}",
		},
		{
			"added behind a comment", "{\n    \"mode\": \"ask\" // how\n    // the end\n}\n", "log.level", `"warn"`,
			"{\n    \"mode\": \"ask\", // how\n    // the end\n    \"log\": {\n        \"level\": \"warn\"\n    }\n}\n",
		},
		{
			"added behind a trailing comma", "{\n\t\"mode\": \"ask\", // how\n}\n", "queue.max", "2",
			"{\n\t\"mode\": \"ask\", // how\n\t\"queue\": {\n\t\t\"max\": 2\n\t}\n}\n",
		},
		{"on one line", `{"mode": "ask"}`, "queue.max", "2", `{"mode": "ask", "queue": {"max": 2}}`},
		{"on one line, trailing comma", `{"mode": "ask", /* x */ }`, "model", `"m"`, `{"mode": "ask", /* x */ "model": "m" }`},
		{"empty", "{}\n", "queue.max", "2", "{\n  \"queue\": {\n    \"max\": 2\n  }\n}\n"},
		{"empty group", "{\n  \"queue\": {}\n}", "queue.max", "2", "{\n  \"queue\": {\n    \"max\": 2\n  }\n}"},
		{"only a comment", "{\n  // nothing yet\n}\n", "mode", `"plan"`, "{\n  // nothing yet\n  \"mode\": \"plan\"\n}\n"},
		{"nothing at all", "", "mode", `"plan"`, "{\n  \"mode\": \"plan\"\n}"},
		{"CRLF", "{\r\n  \"mode\": \"ask\" // x\r\n}\r\n", "model", `"m"`, "{\r\n  \"mode\": \"ask\", // x\r\n  \"model\": \"m\"\r\n}\r\n"},
		{"byte order mark", "\ufeff{\n  \"mode\": \"ask\"\n}", "model", `"m"`, "\ufeff{\n  \"mode\": \"ask\",\n  \"model\": \"m\"\n}"},
		{"escaped name", "{\"\\u006dode\": \"ask\"}", "mode", ` "plan" `, "{\"\\u006dode\": \"plan\"}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, c.before)
			must(t, set(f, c.prop, c.value))
			if got := onDisk(t, f); got != c.after {
				t.Errorf("got  %q\nwant %q", got, c.after)
			}
			again, err := Open(f.Path())
			must(t, err)
			if !same(again.Settings(), f.Settings()) || same(f.Settings(), Defaults()) {
				t.Errorf("in force %+v, in the file %+v", f.Settings(), again.Settings())
			}
		})
	}
}

// Any sequence of changes leaves a file that reads as the settings in force.
func TestSetManyTimes(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "a", "b", "config.jsonc"))
	must(t, err)
	for i := range 60 {
		prop := table[(i*7)%len(table)].prop
		value, _ := f.Get(prop)
		if prop == "queue.max" {
			value = fmt.Appendf(nil, "%d", i+1)
		}
		must(t, f.Set(t.Context(), prop, value))
		again, err := Open(f.Path())
		must(t, err)
		if !same(again.Settings(), f.Settings()) {
			t.Fatalf("%d: %+v\n%+v\n%s", i, f.Settings(), again.Settings(), onDisk(t, f))
		}
	}
	items, _ := f.List()
	for _, it := range items {
		if !it.Set {
			t.Errorf("%s does not count as set", it.Prop)
		}
	}
}

func TestWrongValueChangesNothing(t *testing.T) {
	f := open(t, "{\"mode\": \"plan\"}")
	for _, v := range []string{`"x"`, "null", "1", "", "{", `"ask" "ask"`, `"ask", "model": "x"`, `"ask" // c`} {
		wantReason(t, set(f, "mode", v), gladhand.ReasonInvalid)
	}
	if s := f.Settings(); s.Mode != "plan" || onDisk(t, f) != "{\"mode\": \"plan\"}" {
		t.Errorf("%+v %s", s, onDisk(t, f))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Set(ctx, "mode", json.RawMessage(`"ask"`)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// One bad change of several refuses all.
	err := f.commit(t.Context(), []change{{"model", json.RawMessage(`"m"`)}, {"mode", json.RawMessage(`"x"`)}})
	wantReason(t, err, gladhand.ReasonInvalid)
	must(t, f.commit(t.Context(), []change{{"model", json.RawMessage(`"m"`)}, {"mode", json.RawMessage(`"plan"`)}, {"model", json.RawMessage(`"n"`)}}))
	if s := f.Settings(); s.Mode != "plan" || s.Model != "n" {
		t.Errorf("%+v", s)
	}
}

func TestSomebodyElsesChangeIsKept(t *testing.T) {
	f := open(t, "{}")
	const theirs = "{ /* theirs */ \"mode\": \"plan\"}"
	must(t, os.WriteFile(f.Path(), []byte(theirs), 0o600))
	wantReason(t, set(f, "model", `"m"`), gladhand.ReasonConflict)
	if onDisk(t, f) != theirs || !same(f.Settings(), Defaults()) {
		t.Errorf("%s %+v", onDisk(t, f), f.Settings())
	}
	must(t, f.Reload())
	must(t, set(f, "model", `"m"`))
	if s := f.Settings(); s.Mode != "plan" || s.Model != "m" {
		t.Errorf("%+v", s)
	}
	must(t, os.Remove(f.Path()))
	wantReason(t, set(f, "model", `"n"`), gladhand.ReasonConflict)
	if exists(f.Path()) {
		t.Error("the removed file is back")
	}
	must(t, os.WriteFile(f.Path(), []byte("{nonsense"), 0o600))
	wantReason(t, f.Reload(), gladhand.ReasonInvalid)
	if s := f.Settings(); s.Model != "m" {
		t.Errorf("%+v", s)
	}

	absent, err := Open(filepath.Join(t.TempDir(), "c"))
	must(t, err)
	must(t, os.WriteFile(absent.Path(), nil, 0o600)) // empty is not absent
	wantReason(t, set(absent, "model", `"n"`), gladhand.ReasonConflict)
}

// Of changes made at once through several Files on one path, each is either in
// the file or was refused.
func TestConcurrentSet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.jsonc")
	for round := range 10 {
		props := []string{"model", "agent", "queue.max", "limits.connections"}
		var files []*File
		for range props {
			f, err := Open(path)
			must(t, err)
			files = append(files, f)
		}
		errs := make([]error, len(props))
		value := func(i int) string {
			if i < 2 {
				return fmt.Sprintf("%q", fmt.Sprint("v", round))
			}
			return fmt.Sprint(100 + round)
		}
		var wg sync.WaitGroup
		for i, prop := range props {
			wg.Go(func() { errs[i] = set(files[i], prop, value(i)) })
		}
		wg.Wait()
		end, err := Open(path)
		must(t, err)
		done := 0
		for i, prop := range props {
			got, _ := end.Get(prop)
			if errs[i] == nil {
				done++
				if string(got) != value(i) {
					t.Errorf("round %d: %s was set and is lost", round, prop)
				}
			} else {
				wantReason(t, errs[i], gladhand.ReasonConflict)
				if string(got) == value(i) {
					t.Errorf("round %d: %s was refused and is there", round, prop)
				}
			}
		}
		if done != 1 {
			t.Errorf("round %d: %d changes of one text were made", round, done)
		}
	}
	// Through one File all are made.
	f, err := Open(path)
	must(t, err)
	var wg sync.WaitGroup
	for _, it := range table {
		wg.Go(func() {
			v, _ := f.Get(it.prop)
			if err := f.Set(t.Context(), it.prop, v); err != nil {
				t.Error(err)
			}
			_ = f.Settings()
			_, _ = f.List()
		})
	}
	wg.Wait()
}
