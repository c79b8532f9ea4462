package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gladhand/proc"
)

// prompt compares a prompt's way through the socket until it is stored with a
// bare commit of one row and a raw echo. Each prompt finds an idle session: the
// turn of the one before has ended.
func (b *bench) prompt(ctx context.Context) (err error) {
	e, err := b.echo()
	if err != nil {
		return err
	}
	bare, err := b.bareStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	d, place, err := b.scripted("prompt")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	w, err := dial(ctx, place)
	if err != nil {
		return err
	}
	defer w.close()
	id, err := w.newSession(b.dir)
	if err != nil {
		return err
	}
	if err := w.attach(id, -1); err != nil {
		return err
	}
	const blocks = 20
	n := b.count(2000) / blocks
	var echoes, commits, prompts []time.Duration
	for range blocks {
		if echoes, err = e.times(echoes, n); err != nil {
			return err
		}
		if commits, err = bare.times(commits, n); err != nil {
			return err
		}
		for range n {
			begin := time.Now()
			if err := w.prompt(id, "hello there"); err != nil {
				return err
			}
			prompts = append(prompts, time.Since(begin))
			if err := w.until(`"_gladhand_turn_end"`); err != nil {
				return err
			}
		}
	}
	stored, commit, floor := median(prompts), median(commits), median(echoes)
	b.report(linePrompt, float64(stored-commit)/float64(floor), "prompt p50 %.0f µs, bare commit %.0f µs (× %.2f), raw echo %.1f µs",
		micros(stored), micros(commit), float64(stored)/float64(commit), micros(floor))
	return nil
}

// bareStore is SQLite as the store sets it up, and nothing else: one connection,
// one row a commit.
type bareStore struct {
	c                     *sqlite.Conn
	begin, insert, commit *sqlite.Stmt
	n                     int64
}

func (b *bench) bareStore() (*bareStore, error) {
	dir, err := os.MkdirTemp(b.dir, "bare-") // one for each that asks
	if err != nil {
		return nil, err
	}
	c, err := sqlite.OpenConn(filepath.Join(dir, "bare.db"), sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	s := &bareStore{c: c}
	for _, q := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON",
		"CREATE TABLE prompts (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
	} {
		if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", q, err), c.Close())
		}
	}
	for q, st := range map[string]**sqlite.Stmt{
		"BEGIN IMMEDIATE": &s.begin, "INSERT INTO prompts VALUES (?1, ?2)": &s.insert, "COMMIT": &s.commit,
	} {
		if *st, err = c.Prepare(q); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	// A file that grows is slower to sync. So the write-ahead log gets the length
	// that it has for most of a daemon's life, 1,000 pages, before anything counts.
	for _, step := range []string{"OFF", "FULL"} {
		if err := sqlitex.ExecuteTransient(c, "PRAGMA synchronous = "+step, nil); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if step == "OFF" {
			if _, err := s.times(nil, 1200); err != nil {
				return nil, errors.Join(err, c.Close())
			}
		}
	}
	return s, nil
}

func (s *bareStore) times(list []time.Duration, n int) ([]time.Duration, error) {
	body := make([]byte, frameSize)
	for range n {
		begin := time.Now()
		s.n++
		s.insert.BindInt64(1, s.n)
		s.insert.BindBytes(2, body)
		for _, st := range []*sqlite.Stmt{s.begin, s.insert, s.commit} {
			if _, err := st.Step(); err != nil {
				return nil, err
			}
			if err := st.Reset(); err != nil {
				return nil, err
			}
		}
		list = append(list, time.Since(begin))
	}
	return list, nil
}

func (s *bareStore) close() error { return s.c.Close() }

const manySessions = 128

// sessions compares prompts stored in 128 sessions at once, over a connection
// each, with one at a time over the same connections. The queues are paused, so
// that what is counted is one commit a prompt and nothing else.
func (b *bench) sessions(ctx context.Context) (err error) {
	dir, err := b.fresh("sessions")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.jsonc"), []byte(`{"queue":{"max":256}}`), 0o600); err != nil {
		return err
	}
	d, place, err := b.scriptedIn("sessions", dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	many, err := b.pausedSessions(ctx, place)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range many {
			c.close()
		}
	}()
	const rounds = 5
	each := b.count(20)
	var ones, alls, ratios []float64
	for range rounds {
		begin := time.Now()
		for range max(each/4, 1) {
			for _, c := range many {
				if err := c.prompt(c.session, "hello there"); err != nil {
					return err
				}
			}
		}
		one := float64(max(each/4, 1)*len(many)) / time.Since(begin).Seconds()
		all, err := atOnce(many, each)
		if err != nil {
			return err
		}
		ones, alls, ratios = append(ones, one), append(alls, all), append(ratios, all/one)
	}
	b.report(lineSessions, median(ratios), "%.0f prompts/s stored, one at a time %.0f/s, median of %d", median(alls), median(ones), rounds)
	return nil
}

// prompter is a client of one session.
type prompter struct {
	*wire
	session string
}

func (b *bench) pausedSessions(ctx context.Context, place proc.Place) ([]prompter, error) {
	var many []prompter
	for range manySessions {
		w, err := dial(ctx, place)
		if err != nil {
			return many, err
		}
		id, err := w.newSession(b.dir)
		if err != nil {
			return many, err
		}
		many = append(many, prompter{w, id})
		for _, method := range []string{"_gladhand/detach", "_gladhand/queue/pause"} {
			if _, err := w.call(method, fmt.Sprintf(`{"sessionId":%q}`, id)); err != nil {
				return many, err
			}
		}
	}
	return many, nil
}

// atOnce is how many prompts a second are stored when all send, each the next
// when its last one is stored.
func atOnce(many []prompter, each int) (float64, error) {
	done := make(chan error, len(many))
	begin := time.Now()
	for _, c := range many {
		go func() {
			for range each {
				if err := c.prompt(c.session, "hello there"); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	var err error
	for range many {
		err = errors.Join(err, <-done)
	}
	return float64(len(many)*each) / time.Since(begin).Seconds(), err
}
