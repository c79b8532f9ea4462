package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gladhand"
	"gladhand/store"
)

// Close ends the session's agent and keeps everything for a resume. With others
// attached, or somebody else's work running or waiting, it does nothing but
// report detached: the caller leaves by itself. It needs the right to prompt.
func (h *Host) Close(ctx context.Context, who gladhand.Identity, id gladhand.SessionID) (detached bool, err error) {
	if err := who.May(gladhand.Prompting); err != nil {
		return false, err
	}
	s := h.Live(id)
	if s == nil {
		return false, h.closeCold(ctx, id)
	}
	s.mu.Lock()
	if s.othersNeed(who) {
		s.mu.Unlock()
		return true, nil
	}
	if s.turn != nil {
		s.cancelTurn(&who)
	}
	s.queue.held = true
	s.log.unlock()
	if err := s.drain(ctx, false); err != nil {
		s.unend()
		return false, err
	}
	s.mu.Lock()
	s.row.Info.State = gladhand.StateClosed
	put := s.put()
	s.mu.Unlock()
	if err := s.store.Commit(ctx, put); err != nil {
		s.mu.Lock()
		s.row.Info.State = gladhand.StateIdle
		s.mu.Unlock()
		s.unend()
		return false, err
	}
	return false, h.leave(s, errGone("the session was closed; load it to go on"))
}

// othersNeed reports whether somebody else is attached, or has work running or
// waiting; mu is held.
func (s *Session) othersNeed(who gladhand.Identity) bool {
	for id := range s.clients {
		if id != who.Client {
			return true
		}
	}
	if s.turn != nil && s.turn.prompts[0].By.Client != who.Client {
		return true
	}
	return slices.ContainsFunc(s.queue.items, func(it *queued) bool { return it.By.Client != who.Client })
}

func (h *Host) closeCold(ctx context.Context, id gladhand.SessionID) error {
	row, err := h.store.Session(ctx, id)
	if err != nil {
		return err
	}
	if err := h.usable(row); err != nil {
		return err
	}
	row.Info.State = gladhand.StateClosed
	return h.store.Commit(ctx, func(tx *store.Tx) error { return tx.PutSession(row) })
}

// Kill keeps the history, and the session never runs again. It cancels first,
// then touches the store, and lets go of the session only after the commit: when
// the store fails, the session stays open. It needs the right to manage.
func (h *Host) Kill(ctx context.Context, who gladhand.Identity, id gladhand.SessionID) error {
	return h.finish(ctx, who, id, "the session was killed", func(tx *store.Tx, row store.Session) error {
		if row.Format != Format {
			return h.usable(row) // what this version does not know stays as it is
		}
		row.Info.State = gladhand.StateKilled
		return tx.PutSession(row)
	})
}

// Delete removes the session and everything of it; otherwise as Kill.
func (h *Host) Delete(ctx context.Context, who gladhand.Identity, id gladhand.SessionID) error {
	return h.finish(ctx, who, id, "the session was deleted", func(tx *store.Tx, row store.Session) error {
		return tx.DeleteSession(row.Info.ID)
	})
}

func (h *Host) finish(ctx context.Context, who gladhand.Identity, id gladhand.SessionID, why string, commit func(*store.Tx, store.Session) error) error {
	if err := who.May(gladhand.Manage); err != nil {
		return err
	}
	s := h.Live(id)
	if s == nil {
		row, err := h.store.Session(ctx, id)
		if err != nil {
			return err
		}
		return h.store.Commit(ctx, func(tx *store.Tx) error { return commit(tx, row) })
	}
	s.mu.Lock()
	s.queue.held = true
	s.ending = errGone(why)
	if s.turn != nil {
		s.cancelTurn(&who)
	}
	s.log.unlock()
	if err := s.drain(ctx, false); err != nil {
		s.unend()
		return err
	}
	s.mu.Lock()
	for len(s.queue.items) > 0 {
		s.drop(s.queue.items[0], &who, why)
	}
	s.row.Running = 0
	row := s.row
	s.mu.Unlock()
	if err := h.store.Commit(ctx, func(tx *store.Tx) error { return commit(tx, row) }); err != nil {
		s.unend()
		return err
	}
	return h.leave(s, errGone(why))
}

func errGone(why string) error {
	return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonGone, "%s", why)
}

// unend takes back an end that could not be stored.
func (s *Session) unend() {
	s.mu.Lock()
	defer s.log.unlock()
	s.ending = nil
	s.queue.held = false
	s.kick()
}

// drain waits until the runner has ended and everything shown is stored. When the
// store fails, a patient one goes on until ctx ends; another returns why.
func (s *Session) drain(ctx context.Context, patient bool) error {
	for first := true; ; first = false {
		s.mu.Lock()
		failed := s.log.writing.stuck.Load()
		if first || failed == nil && !s.runner {
			s.log.flush() // else it is stored in a while, and not tried as fast as it fails
		}
		var wait <-chan struct{}
		switch {
		case s.log.unsaved > 0 || len(s.log.hidden) > 0:
			wait = s.log.room.wait()
		case s.runner:
			wait = s.idle.wait()
		}
		s.log.unlock()
		if wait == nil {
			return nil
		}
		if failed != nil && !first && !patient {
			return failed.err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			if failed != nil {
				return failed.err
			}
			return ctx.Err()
		}
	}
}

// leave unregisters a session and ends its agent; readers read to the end and
// are then told why it is gone.
func (h *Host) leave(s *Session, why error) error {
	h.forget(s)
	s.mu.Lock()
	s.gone = why
	agent := s.agent
	s.agent = nil
	if s.log.timer != nil {
		s.log.timer.Stop()
	}
	s.log.wake()
	s.log.unlock()
	if agent != nil {
		return agent.Close()
	}
	return nil
}

// Shutdown stops every session, in parallel: nothing new starts, a running turn
// may go on until ctx ends and is then cancelled, everything shown is stored,
// agents are closed. Waiting prompts stay, for the next daemon. Shutdown is
// called once; grace bounds what follows the cancelling. Its error says what
// could not be stored, or which agent did not close.
func (h *Host) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return nil
	}
	h.stopped = true
	close(h.opts.stopping)
	h.mu.Unlock()
	var wg sync.WaitGroup
	all := h.all()
	errs := make([]error, len(all))
	for i, s := range all {
		wg.Go(func() {
			if errs[i] = h.stop(ctx, s); errs[i] != nil {
				s.slog.Error("stopping", "err", errs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h *Host) stop(ctx context.Context, s *Session) error {
	s.mu.Lock()
	s.queue.held = true
	s.mu.Unlock()
	err := s.drain(ctx, true)
	if err != nil {
		s.mu.Lock()
		if s.turn != nil {
			s.cancelTurn(nil)
		}
		s.log.unlock()
		last, cancel := context.WithTimeout(context.Background(), 2*cancelGrace)
		defer cancel()
		err = s.drain(last, true)
	}
	if lerr := h.leave(s, errStopping); err == nil {
		err = lerr
	}
	return err
}

// unloadAfter is how long a session must have been unused before it may be let go
// of to make room.
const unloadAfter = time.Minute

// makeRoom lets go of the session that was unused longest: it stays as it is in
// the store, and is opened again by whoever names it. It reports whether there
// was one.
func (h *Host) makeRoom() bool {
	h.mu.Lock()
	var oldest *Session
	var since time.Time
	for _, s := range h.open {
		if used, idle := s.unused(); idle && (oldest == nil || used.Before(since)) {
			oldest, since = s, used
		}
	}
	h.mu.Unlock()
	if oldest == nil || time.Since(since) < unloadAfter {
		return false
	}
	if err := h.leave(oldest, errGone("the session was unused and let go of; open it again")); err != nil {
		oldest.slog.Warn("closing the agent of an unused session", "err", err)
	}
	return true
}

// unused reports since when nobody needs the session in memory.
func (s *Session) unused() (since time.Time, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle = len(s.clients) == 0 && !s.runner && len(s.queue.items) == 0 && len(s.asks) == 0 &&
		s.log.unsaved == 0 && len(s.log.hidden) == 0
	return s.used, idle
}
