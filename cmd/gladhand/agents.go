package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gladhand"
	"gladhand/agent"
	"gladhand/config"
	"gladhand/mcp"
	"gladhand/model"
	"gladhand/proc"
	"gladhand/sandbox"
	"gladhand/session"
	"gladhand/tool"
)

// What this version has of its own.
const (
	builtIn      = "gladhand"
	offlineModel = model.OfflineID
)

// agents makes the built-in agents of a daemon's sessions, with the settings that
// are in force when a session's first turn begins.
type agents struct {
	place    proc.Place
	settings string // the file's path
	log      *slog.Logger
	models   *model.Registry

	mu  sync.Mutex
	now config.Settings
}

func newAgents(place proc.Place, settings string, log *slog.Logger) *agents {
	a := &agents{place: place, settings: settings, log: log, models: model.NewRegistry(model.RegistryOptions{})}
	a.configure(config.Defaults())
	return a
}

// configure takes new settings.
func (a *agents) configure(s config.Settings) {
	a.mu.Lock()
	a.now = s
	a.mu.Unlock()
	a.models.Configure(registryOptions(s))
}

func (a *agents) current() config.Settings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// new makes the agent of a session.
func (a *agents) new(_ context.Context, in gladhand.SessionInfo) (session.Agent, error) {
	s := a.current()
	log := a.log.With("session", in.ID)
	return agent.New(agent.Options{
		Models:       a.models.Open,
		Servers:      newServers(s, in.Cwd, log),
		Instructions: []string{filepath.Join(filepath.Dir(a.settings), "AGENTS.md")},
		MaxSteps:     s.Steps.Max,
		ReduceAt:     s.Compact.At,
		OutputDir:    filepath.Join(a.place.DataDir, "output"),
		Log:          log,
	}), nil
}

// servers are the MCP servers of one session: those of the settings, and those that
// its client brought along, which win where they have the same name.
type servers struct {
	own  []mcp.Server
	opts mcp.Options

	mu      sync.Mutex
	brought []mcp.Server
	set     *mcp.Set // nil until it is needed, and when brought has changed

	said struct {
		sync.Mutex // a leaf: the Set may say something with any lock held
		texts      []string
	}
}

// noticesMax is how many notices are kept for a turn to tell.
const noticesMax = 32

// notice keeps what people should know until a turn tells it.
func (s *servers) notice(text string) {
	s.opts.Log.Info("an MCP server", "says", text)
	s.said.Lock()
	defer s.said.Unlock()
	if len(s.said.texts) < noticesMax {
		s.said.texts = append(s.said.texts, text)
	}
}

// Notices implements [agent.Servers].
func (s *servers) Notices() []string {
	s.said.Lock()
	defer s.said.Unlock()
	texts := s.said.texts
	s.said.texts = nil
	return texts
}

func newServers(s config.Settings, cwd string, log *slog.Logger) *servers {
	keys := model.Keys{Env: os.Getenv}
	out := &servers{opts: mcp.Options{
		Dir: cwd, Log: log, Version: ourVersion(),
		Environ: sandbox.CleanEnv(os.Environ()),
		Reveal:  func(ctx context.Context, s gladhand.Secret) (string, error) { return keys.Resolve(ctx, s, "") },
	}}
	out.opts.Notice = out.notice
	if c, err := model.NewHTTPClient(networkOf(s)); err != nil {
		log.Warn("MCP servers are reached without the settings of the network", "err", err)
	} else {
		out.opts.HTTP = c
	}
	for _, name := range slices.Sorted(maps.Keys(s.MCP)) {
		if c := s.MCP[name]; !c.Disabled {
			out.own = append(out.own, mcp.Server{
				Name: name, Command: c.Command, Args: c.Args, Env: c.Env, URL: c.URL, Headers: c.Headers, Timeout: c.Timeout, References: true,
			})
		}
	}
	return out
}

// checkServers refuses what is no list of MCP servers. Single ones that cannot be
// used are left out: an editor passes all that its user has configured.
func checkServers(raw json.RawMessage) error {
	servers, err := mcp.ParseServers(raw)
	if err != nil && len(servers) == 0 {
		return err
	}
	return nil
}

// UseServers implements [session.ServerUser] for the agent.
func (s *servers) UseServers(raw json.RawMessage) {
	brought, err := mcp.ParseServers(raw)
	if err != nil {
		s.notice("Some of the MCP servers that a client passed are not used: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brought = brought
	if err := s.close(); err != nil {
		s.opts.Log.Warn("closing MCP servers", "err", err)
	}
}

func (s *servers) close() error {
	if s.set == nil {
		return nil
	}
	err := s.set.Close()
	s.set = nil
	return err
}

// Tools implements [agent.Servers].
func (s *servers) Tools(ctx context.Context) []tool.Tool {
	s.mu.Lock()
	if s.set == nil {
		all := slices.Clone(s.brought)
		for _, o := range s.own {
			if !slices.ContainsFunc(all, func(b mcp.Server) bool { return b.Name == o.Name }) {
				all = append(all, o)
			}
		}
		if len(all) == 0 {
			s.mu.Unlock()
			return nil
		}
		s.set = mcp.Open(all, s.opts)
	}
	set := s.set
	s.mu.Unlock()
	return set.Tools(ctx)
}

// Close implements [agent.Servers].
func (s *servers) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}
