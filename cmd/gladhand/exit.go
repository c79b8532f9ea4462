package main

import (
	"context"
	"errors"
	"io/fs"

	"gladhand"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitTurnFailed  = 3
	exitCancelled   = 4
	exitDenied      = 5 // or nobody could answer
	exitUnavailable = 6 // the daemon, a model, the target
	exitRefused     = 7 // paused, full, not allowed
)

// exitError ends the command with a code; err is said, unless it is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error in how the command was called.
func usage(err error) error { return &exitError{exitUsage, err} }

// exit says what went wrong and returns the exit code.
func (a *app) exit(err error) int {
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if !a.started && code == exitFailed {
		code = exitUsage // cobra's own errors: flags, arguments, unknown commands
	}
	if text := err.Error(); text != "" {
		a.say(a.err, "gladhand: %s", lines(text))
	}
	return code
}

func exitCode(err error) int {
	var own *exitError
	if errors.As(err, &own) {
		return own.code
	}
	if errors.Is(err, context.Canceled) {
		return exitCancelled
	}
	var e *gladhand.Error
	if !errors.As(err, &e) {
		return exitFailed
	}
	switch e.Reason {
	case gladhand.ReasonUnavailable, gladhand.ReasonGone, gladhand.ReasonNotFound:
		return exitUnavailable
	case gladhand.ReasonConflict, gladhand.ReasonForbidden, gladhand.ReasonUnowned, gladhand.ReasonPaused, gladhand.ReasonFull,
		gladhand.ReasonQueueFull, gladhand.ReasonCapacity, gladhand.ReasonGuard, gladhand.ReasonConnectionLimit,
		gladhand.ReasonInFlightLimit, gladhand.ReasonUnsupported:
		return exitRefused
	}
	switch e.Code {
	case gladhand.CodeInvalidParams:
		if errors.Is(e.Err, fs.ErrNotExist) {
			return exitFailed
		}
		return exitUsage
	case gladhand.CodeCancelled:
		return exitCancelled
	case gladhand.CodeForbidden:
		return exitRefused
	}
	return exitFailed
}
