package main

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gladhand/client"
	"gladhand/daemon"
)

func (a *app) acp() *cobra.Command {
	return &cobra.Command{
		Use: "acp", Short: "Be an ACP agent on standard input and output, for editors",
		Example: "  gladhand acp        the command to give to an editor",
		Long: "Connects standard input and output with the daemon, byte for byte; the daemon speaks\n" +
			"the Agent Client Protocol, versions 1 and 2. Sessions stay when the editor leaves.",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.splice(cmd.Context()) },
	}
}

// splice copies both ways until either end is done: when the editor closes our
// input, what the daemon still has to say is passed on first.
func (a *app) splice(ctx context.Context) error {
	o, err := a.options("acp")
	if err != nil {
		return err
	}
	stream, err := client.Stream(ctx, o)
	if err != nil {
		return err
	}
	defer stream.Close()
	in, out := make(chan error, 1), make(chan error, 1)
	var over atomic.Bool // our input has ended
	go func() {
		_, err := io.Copy(stream, a.in)
		over.Store(true) // before the daemon knows, and may close its end
		if half, ok := stream.(interface{ CloseWrite() error }); ok && err == nil {
			err = half.CloseWrite()
		} else {
			// A pipe that cannot be closed by half: give the daemon its second.
			time.AfterFunc(time.Second, func() { stream.Close() })
		}
		in <- err
	}()
	go func() {
		_, err := io.Copy(a.out, stream)
		out <- err
	}()
	select {
	case err := <-out:
		switch {
		case over.Load():
			return errors.Join(<-in, ignoreGone(err))
		case err != nil:
			return ignoreGone(err)
		}
		return &exitError{exitUnavailable, errors.New("the daemon closed the connection")}
	case err := <-in:
		select {
		case outErr := <-out:
			return errors.Join(err, ignoreGone(outErr))
		case <-time.After(lastWords):
			return err // our output is not read any more
		}
	}
}

// lastWords is how long what the daemon still has to say may take, once the editor
// has closed our input: a little longer than the daemon's own limit.
const lastWords = daemon.Linger + time.Second

// ignoreGone drops the error of an end that is not there any more: an editor that
// goes away in mid-turn closes its pipes in any order, and needs no complaint.
func ignoreGone(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // what Windows says of a pipe's end
	if runtime.GOOS == "windows" && (errors.Is(err, brokenPipe) || errors.Is(err, noData)) {
		return nil
	}
	return err
}
