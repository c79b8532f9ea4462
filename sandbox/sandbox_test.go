package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gladhand/sandbox"
)

func TestCleanEnv(t *testing.T) {
	got := sandbox.CleanEnv([]string{
		"PATH=/bin", "HOME=/home/x", "LANG=C.UTF-8", "SSH_AUTH_SOCK=/s", "MONKEY=1",
		"ANTHROPIC_API_KEY=s", "openai_api_key=s", "GITHUB_TOKEN=s", "DB_PASSWORD=s", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=s",
		"MY_SECRET=s", "PGPASSWORD=s", "GLADHAND_CONFIG=/c", "GLADHAND_SOCKET=/sock", "PAGER=less", "TERM=xterm", "=odd",
	})
	for _, e := range got {
		if strings.HasSuffix(e, "=s") || strings.HasPrefix(e, "GLADHAND_CONFIG") || strings.HasPrefix(e, "=") {
			t.Errorf("%s came through", e)
		}
	}
	for _, e := range []string{"PATH=/bin", "HOME=/home/x", "LANG=C.UTF-8", "SSH_AUTH_SOCK=/s", "MONKEY=1", "GLADHAND_SOCKET=/sock", "PAGER=cat", "TERM=dumb"} {
		if !slices.Contains(got, e) {
			t.Errorf("%s is missing", e)
		}
	}
	if slices.Contains(got, "PAGER=less") {
		t.Error("the pager is set twice")
	}
}

func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a POSIX shell's commands")
	}
	t.Setenv("X_API_KEY", "secret")
	var out, errs bytes.Buffer
	dir := t.TempDir()
	exit, err := sandbox.Run(t.Context(), sandbox.Command{Line: "env; echo e >&2; exit 4", Dir: dir, Stdout: &out, Stderr: &errs})
	if err != nil || exit.Code != 4 || errs.String() != "e\n" {
		t.Errorf("%+v, %v, %q", exit, err, errs.String())
	}
	if strings.Contains(out.String(), "secret") || !strings.Contains(out.String(), "PWD=") {
		t.Errorf("environment %s", out.String())
	}
	exit, err = sandbox.Run(t.Context(), sandbox.Command{Line: "sleep 60", Dir: dir, Timeout: 50 * time.Millisecond})
	if err != nil || !exit.TimedOut {
		t.Errorf("time limit: %+v, %v", exit, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err = sandbox.Run(ctx, sandbox.Command{Line: "trap '' TERM; sleep 60", Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: %v", err)
	}
	if _, err = sandbox.Run(ctx, sandbox.Command{Line: "touch started", Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if _, err = sandbox.Run(t.Context(), sandbox.Command{Line: "true", Dir: dir + "/gone"}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no directory: %v", err)
	}
}
