package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/natefinch/lumberjack.v2"

	"gladhand"
	"gladhand/client"
	"gladhand/config"
	"gladhand/daemon"
	"gladhand/proc"
)

func (a *app) daemon() *cobra.Command {
	cmd := &cobra.Command{
		Use: "daemon", Short: "Run the daemon in the foreground, or start, stop and ask it",
		Example: "  gladhand daemon status\n  gladhand daemon logs -f\n  gladhand daemon        in the foreground, until Ctrl-C",
		Long: "Every command starts the daemon when none runs; there is no need to do it by hand.\n" +
			"Without a command it runs in the foreground, and also writes its log to standard error.",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
	cmd.AddCommand(a.daemonStart(), a.daemonStop(), a.daemonRestart(), a.daemonStatus(), a.daemonLogs())
	return cmd
}

// serve runs the daemon until it is told to stop.
func (a *app) serve(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	place, err := a.place()
	if err != nil {
		return err
	}
	if err := proc.PrepareDir(place.DataDir); err != nil {
		return err
	}
	settings, _ := a.settingsPath()
	log, closeLog := a.log(place, settings)
	defer closeLog()
	agents := newAgents(place, settings, log)
	err = serveAfter(ctx, place, log, daemon.Options{
		Place: place, Config: settings, Version: ourVersion(), Log: log, LogFile: client.LogFile(place),
		NewAgent: agents.new, Models: choices{agents.models}, Agents: []string{builtIn},
		CheckServers: checkServers, Configured: agents.configure,
	})
	if err != nil {
		log.Error("the daemon ended", "err", err)
	}
	return err
}

// handover is how long a daemon waits for one before it that still lets its
// turns end.
const handover = 2 * time.Minute

// serveAfter is daemon.Run, but waits for a predecessor that takes no connections
// any more and holds the data still.
func serveAfter(ctx context.Context, place proc.Place, log *slog.Logger, o daemon.Options) error {
	until := time.Now().Add(handover)
	for told := false; ; told = true {
		err := daemon.Run(ctx, o)
		if gladhand.ReasonOf(err) != gladhand.ReasonConflict || time.Now().After(until) {
			return err
		}
		if c, derr := proc.Dial(ctx, place); derr == nil {
			c.Close()
			return err // it lives, and serves
		}
		if !told {
			log.Info("waiting for the daemon before this one to end", "err", err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// streamPace is the pause after each of the offline model's words, so that its
// answers are seen to stream.
const streamPace = 8 * time.Millisecond

// log writes to the log file, and to standard error unless that is the same: a
// daemon that was started by a command has it there, for what is no log.
func (a *app) log(place proc.Place, settings string) (*slog.Logger, func()) {
	level := slog.LevelInfo
	if f, err := config.Open(settings); err == nil { // else the daemon says why it does not start
		_ = level.UnmarshalText([]byte(f.Settings().Log.Level)) // validated
	}
	if text := os.Getenv("GLADHAND_LOG"); text != "" {
		_ = level.UnmarshalText([]byte(text)) // an unknown level changes nothing
	}
	file := &lumberjack.Logger{Filename: client.LogFile(place), MaxSize: 8, MaxBackups: 2}
	var w io.Writer = file
	if !sameAsLog(a.err, file.Filename) {
		w = io.MultiWriter(file, a.err)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), func() { _ = file.Close() }
}

func sameAsLog(f *os.File, path string) bool {
	one, err := f.Stat()
	if err != nil {
		return true // nowhere to write to
	}
	two, err := os.Stat(path)
	return err == nil && os.SameFile(one, two)
}

// errNoDaemon is said where a running daemon is needed and none is started.
var errNoDaemon = &exitError{exitUnavailable, errors.New("no daemon runs; `gladhand daemon start` starts one, and so does every other command")}
