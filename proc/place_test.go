//go:build unix

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gladhand"
)

func envOf(kv ...string) func(string) string {
	return func(k string) string { return lookup(kv, k) }
}

func TestLocate(t *testing.T) {
	home := shortDir(t)
	uid := os.Geteuid()
	long := filepath.Join(home, strings.Repeat("long/", 30)+"data")
	hash := hashName(long)
	for _, c := range []struct {
		name         string
		data, socket string
		env          []string
		want         Place
	}{
		{"defaults", "", "", nil, Place{home + "/.local/state/gladhand", home + "/.local/state/gladhand/daemon.sock"}},
		{"XDG", "", "", []string{"XDG_STATE_HOME=/s"}, Place{"/s/gladhand", "/s/gladhand/daemon.sock"}},
		{"a relative XDG path is ignored", "", "", []string{"XDG_STATE_HOME=s"}, Place{home + "/.local/state/gladhand", home + "/.local/state/gladhand/daemon.sock"}},
		{"variable", "", "", []string{"XDG_STATE_HOME=/s", "GLADHAND_DATA_DIR=/d"}, Place{"/d", "/d/daemon.sock"}},
		{"flag", "/f", "", []string{"GLADHAND_DATA_DIR=/d"}, Place{"/f", "/f/daemon.sock"}},
		{"socket variable", "/f", "", []string{"GLADHAND_SOCKET=/x/s"}, Place{"/f", "/x/s"}},
		{"socket flag", "/f", "/y/s", []string{"GLADHAND_SOCKET=/x/s"}, Place{"/f", "/y/s"}},
		{"long, runtime directory", long, "", []string{"XDG_RUNTIME_DIR=/run/user/7", "TMPDIR=/t"}, Place{long, "/run/user/7/gladhand/" + hash + ".sock"}},
		{"long, TMPDIR", long, "", []string{"TMPDIR=/t"}, Place{long, fmt.Sprintf("/t/gladhand-%d/%s.sock", uid, hash)}},
		{"long, neither", long, "", nil, Place{long, fmt.Sprintf("/tmp/gladhand-%d/%s.sock", uid, hash)}},
		{"long, the others long too", long, "", []string{"XDG_RUNTIME_DIR=" + long, "TMPDIR=" + long}, Place{long, fmt.Sprintf("/tmp/gladhand-%d/%s.sock", uid, hash)}},
		{"odd names", "/a b/ü 'é\" 日本", "", nil, Place{"/a b/ü 'é\" 日本", "/a b/ü 'é\" 日本/daemon.sock"}}, // R223, R225
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Locate(c.data, c.socket, envOf(append([]string{"HOME=" + home}, c.env...)...))
			if err != nil || got != c.want {
				t.Fatalf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

// R096: whatever the length of the directory's name, the socket's stays fit.
func TestLocateNameOfAnyLength(t *testing.T) {
	lengths := map[int]bool{}
	for _, n := range []int{85, 200, 250} {
		p, err := Locate("/d/"+strings.Repeat("x", n), "", envOf("HOME=/h", "XDG_RUNTIME_DIR=/run/user/1000"))
		if err != nil || len(p.Endpoint) > MaxSocketPath {
			t.Fatalf("%d: %+v, %v", n, p, err)
		}
		if n > 85 {
			lengths[len(p.Endpoint)] = true
		}
	}
	if len(lengths) != 1 {
		t.Errorf("lengths differ: %v", lengths)
	}
}

func TestLocateLimit(t *testing.T) {
	_, err := Locate("/d", "/"+strings.Repeat("s", MaxSocketPath), envOf())
	wantReason(t, err, gladhand.ReasonInvalid)
	if _, err := Locate("/d", "/"+strings.Repeat("s", MaxSocketPath-1), envOf()); err != nil {
		t.Fatal(err)
	}
	fits := "/" + strings.Repeat("d", MaxSocketPath-1-len("/daemon.sock"))
	for dir, want := range map[string]bool{fits: true, fits + "d": false} {
		p, err := Locate(dir, "", envOf())
		if got := p.Endpoint == dir+"/daemon.sock"; err != nil || got != want {
			t.Errorf("%d bytes: %s, %v", len(dir), p.Endpoint, err)
		}
	}
}

// A home behind a link is one place under both of its names, before the
// directory exists and after; a data directory that is a link stays visible as
// one.
func TestLocateLinks(t *testing.T) {
	d := shortDir(t)
	must(t, os.Mkdir(d+"/real", 0o700), os.Symlink(d+"/real", d+"/home"))
	env1, env2 := envOf("HOME="+d+"/home"), envOf("HOME="+d+"/real")
	a, err1 := Locate("", "", env1)
	b, err2 := Locate("", "", env2)
	if a != b || err1 != nil || err2 != nil {
		t.Fatalf("%+v %v\n%+v %v", a, err1, b, err2)
	}
	must(t, PrepareDir(a.DataDir))
	if c, err := Locate("", "", env1); c != a || err != nil {
		t.Fatalf("once it exists: %+v %v, before %+v", c, err, a)
	}
	must(t, os.Symlink(a.DataDir, d+"/link"))
	l, err := Locate(d+"/link", "", env1)
	if err != nil || l.DataDir != d+"/link" {
		t.Fatalf("%+v %v", l, err)
	}
	wantReason(t, PrepareDir(l.DataDir), gladhand.ReasonBlocked)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
