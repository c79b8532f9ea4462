package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"gladhand"
	"gladhand/client"
	"gladhand/config"
	"gladhand/proc"
)

// version is set when a release is built.
var version = ""

// ourVersion is the release, else the commit that the binary was built from.
var ourVersion = sync.OnceValue(func() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
})

func (a *app) place() (proc.Place, error) { return proc.Locate(a.dataDir, a.socket, os.Getenv) }

// settingsPath is where the settings file is, and whether it was named.
func (a *app) settingsPath() (path string, named bool) {
	return config.Path(a.config, os.Getenv, a.dataDir), a.config != "" || os.Getenv("GLADHAND_CONFIG") != ""
}

// options are those to reach the daemon with; label is what others see us as.
func (a *app) options(label string) (client.Options, error) {
	p, err := a.place()
	if err != nil {
		return client.Options{}, err
	}
	o := client.Options{Place: p, Label: label, Version: ourVersion()}
	o.Config, o.CheckConfig = a.settingsPath()
	if isTerminal(a.err) {
		o.Waiting = func(what string) { a.note("%s…", what) }
	}
	return o, nil
}

// connect reaches the daemon, starting it when none runs.
func (a *app) connect(ctx context.Context, label string) (*client.Client, error) {
	o, err := a.options(label)
	if err != nil {
		return nil, err
	}
	return client.Connect(ctx, o)
}

// with runs f with a connection.
func (a *app) with(ctx context.Context, f func(*client.Client) error) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// emit prints v as one line of JSON.
func (a *app) emit(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// workspace is the absolute path of a directory; "" is the current one.
func workspace(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", gladhand.Errorf(gladhand.CodeInternal, "", "the current directory is not to be found: %w", err)
	}
	return abs, nil
}
