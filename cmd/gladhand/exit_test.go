package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gladhand"
)

func TestExitCodes(t *testing.T) {
	say := func(code gladhand.Code, reason gladhand.Reason) error {
		return fmt.Errorf("wrapped: %w", gladhand.Errorf(code, reason, "x"))
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("x"), exitFailed},
		{context.Canceled, exitCancelled},
		{usage(errors.New("x")), exitUsage},
		{say(gladhand.CodeInvalidParams, gladhand.ReasonInvalid), exitUsage},
		{say(gladhand.CodeInternal, gladhand.ReasonUnavailable), exitUnavailable},
		{say(gladhand.CodeConflict, gladhand.ReasonUnavailable), exitUnavailable}, // another settings file
		{say(gladhand.CodeNotFound, gladhand.ReasonGone), exitUnavailable},
		{say(gladhand.CodeNotFound, gladhand.ReasonNotFound), exitUnavailable},
		{say(gladhand.CodeQueueFull, gladhand.ReasonQueueFull), exitRefused},
		{say(gladhand.CodeForbidden, gladhand.ReasonForbidden), exitRefused},
		{say(gladhand.CodeForbidden, ""), exitRefused},
		{say(gladhand.CodeLimit, gladhand.ReasonConnectionLimit), exitRefused},
		{say(gladhand.CodeCancelled, ""), exitCancelled},
		{say(gladhand.CodeInternal, gladhand.ReasonDiskFull), exitFailed},
		{&exitError{exitDenied, nil}, exitDenied},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v (%v): %d, want %d", c.err, gladhand.ReasonOf(c.err), got, c.want)
		}
	}
}
