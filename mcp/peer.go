package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// peer is one server of a set, over all its lives.
type peer struct {
	set    *Set
	cfg    Server
	prefix string // of its tools' names
	print  string
	mask   mask
	first  chan struct{} // closed when the first attempt has ended

	mu      sync.Mutex // held while nothing is waited for
	state   State
	why     string
	conn    *conn // while ready
	tools   []*entry
	attempt chan struct{} // closed when the attempt under way has ended
	tries   int           // attempts so far
	next    time.Time     // no attempt before
	said    map[string]bool
	later   []string // for people, once mu is free
}

func newPeer(s *Set, cfg Server, taken map[string]bool) *peer {
	p := &peer{set: s, cfg: cfg, print: cfg.print(), first: make(chan struct{}), state: Starting, said: map[string]bool{}}
	p.prefix = prefix(cfg.Name, p.print, taken)
	if u := cfg.URL.Reveal(); u != "" {
		p.mask.addURL(u)
	}
	return p
}

// open begins the first attempt, unless the server cannot be used at all.
func (p *peer) open(unusable error) {
	p.mu.Lock()
	defer p.free()
	if unusable == nil {
		p.begin()
		return
	}
	p.state, p.why, p.tries = Failed, unusable.Error(), maxRestarts+1
	close(p.first)
	p.say(fmt.Sprintf("MCP server %q is not used: %s.", shown(p.cfg.Name), p.why))
}

// say tells people something once mu, which is held, is free.
func (p *peer) say(text string) { p.later = append(p.later, text) }

// free releases mu and says what is to be said.
func (p *peer) free() {
	texts := p.later
	p.later = nil
	p.mu.Unlock()
	for _, text := range texts {
		p.set.say(text)
	}
}

func (p *peer) status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Status{Name: shown(p.cfg.Name), State: p.state, Tools: len(p.tools), Why: p.why}
}

// offered are the tools that may be called, now or after a restart. A server
// that is not there is tried again.
func (p *peer) offered() []*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Failed {
		p.begin()
	}
	return p.tools
}

// find is a tool as the server described it last, nil when it has it no more.
func (p *peer) find(name string) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.tools {
		if e.name == name {
			return e
		}
	}
	return nil
}

// begin begins an attempt, unless one is under way, and reports whether one is.
// mu is held.
func (p *peer) begin() bool {
	if p.attempt != nil {
		return true
	}
	if p.tries > maxRestarts {
		return false
	}
	done := make(chan struct{})
	again := p.tries
	if !p.set.run(func() { p.try(done, again) }) {
		return false
	}
	p.tries++
	p.attempt, p.state = done, Starting
	return true
}

// try is one attempt. Again is 0 for the first.
func (p *peer) try(done chan struct{}, again int) {
	defer func() {
		p.mu.Lock()
		p.attempt = nil
		close(done)
		p.mu.Unlock()
		if again == 0 {
			close(p.first)
		}
	}()
	p.mu.Lock()
	pause := time.Until(p.next)
	p.mu.Unlock()
	if pause > 0 && !sleep(p.set.ctx, pause) {
		return
	}
	c, tools, err := p.dial(p.set.ctx)
	if err == nil && !p.ready(c, tools, again) {
		c.close()
	}
	if err != nil {
		p.mu.Lock()
		defer p.free()
		p.fell(p.mask.line(err.Error()))
		if what := fmt.Sprintf("MCP server %q could not be started: %s.", shown(p.cfg.Name), p.why); p.once(what) {
			p.say(what + p.hope())
		}
	}
}

// ready takes a connection into use; not when the set is closing.
func (p *peer) ready(c *conn, tools listing, again int) bool {
	p.mu.Lock()
	defer p.free()
	if !p.set.run(func() { p.watch(c) }) {
		return false
	}
	p.state, p.why, p.conn = Ready, "", c
	p.take(tools)
	if again > 0 {
		p.say(fmt.Sprintf("MCP server %q was started again (%d of %d times).", shown(p.cfg.Name), again, maxRestarts))
	}
	return true
}

// fell takes note of an end or a failure; mu is held.
func (p *peer) fell(why string) {
	p.conn, p.why, p.state = nil, why, Gone
	if len(p.tools) == 0 || p.tries > maxRestarts {
		p.state, p.tools = Failed, nil
	}
	p.next = time.Now().Add(p.set.t.backoff << max(0, p.tries-1))
}

// hope says whether it is tried again; mu is held.
func (p *peer) hope() string {
	switch {
	case p.tries > maxRestarts:
		return " It is not tried again in this session."
	case p.state == Gone:
		return " It is started again when it is used."
	}
	return " It is tried again later."
}

// watch looks after a connection until it ends.
func (p *peer) watch(c *conn) {
	for {
		select {
		case <-c.kick:
			p.look(c)
		case <-c.done:
			p.lost(c)
			c.close()
			return
		case <-p.set.ctx.Done():
			c.close()
			return
		}
	}
}

// look reads the list of tools again, not often.
func (p *peer) look(c *conn) {
	if !sleep(p.set.ctx, p.set.t.debounce) {
		return
	}
	select {
	case <-c.kick: // said meanwhile, and seen now
	default:
	}
	ctx, cancel := context.WithTimeout(p.set.ctx, p.set.t.start)
	defer cancel()
	tools, err := c.list(ctx, p)
	if err != nil {
		p.set.o.Log.Warn("an MCP server did not list its tools again", "server", shown(p.cfg.Name), "error", p.mask.line(err.Error()))
		return
	}
	p.mu.Lock()
	if p.conn == c {
		p.take(tools)
	}
	p.free()
	sleep(p.set.ctx, p.set.t.gap)
}

// take puts tools in place of the last ones, and says what about them is not as
// it was meant, once; mu is held.
func (p *peer) take(l listing) {
	p.tools = l.tools
	for _, note := range l.notes {
		if p.once(note) {
			p.say(fmt.Sprintf("MCP server %q: %s", shown(p.cfg.Name), note))
		}
	}
}

// once reports whether something is said for the first time; mu is held.
func (p *peer) once(what string) bool {
	if p.said[what] || len(p.said) == 100 {
		return false
	}
	p.said[what] = true
	return true
}

// lost takes note that a connection has ended.
func (p *peer) lost(c *conn) {
	p.mu.Lock()
	defer p.free()
	if p.conn != c {
		return
	}
	p.fell(p.mask.line(c.why()))
	p.say(fmt.Sprintf("MCP server %q is gone: %s.%s", shown(p.cfg.Name), p.why, p.hope()))
}

// answered takes note of a call that went well: a server with an address that
// comes and goes with the network may do so for as long as it likes.
func (p *peer) answered() {
	if p.cfg.Command != "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries = min(p.tries, 1)
}

// use is the connection, after starting the server again if need be.
func (p *peer) use(ctx context.Context) (*conn, error) {
	for waited := false; ; waited = true {
		p.mu.Lock()
		c, why := p.conn, p.why
		going := c == nil && !waited && p.begin()
		attempt := p.attempt
		p.mu.Unlock()
		switch {
		case c != nil:
			return c, nil
		case !going:
			return nil, fmt.Errorf("the MCP server %q is not there: %s", shown(p.cfg.Name), why)
		}
		select {
		case <-attempt:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-p.set.ctx.Done():
			return nil, errors.New("the session is closing")
		}
	}
}

// sleep waits, and reports whether ctx is still there after it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
