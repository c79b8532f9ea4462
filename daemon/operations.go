package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
)

func status(c *conn, _ context.Context, _ *rpc.Request) (any, error) {
	if err := c.identity().May(gladhand.Observe); err != nil {
		return nil, err
	}
	return c.d.status(), nil
}

// stop answers first, and then has Run go on to the shutdown.
func stop(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	p := gladhand.StopParams{DrainMS: -1}
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	who := c.identity()
	if err := who.May(gladhand.Manage); err != nil {
		return nil, err
	}
	drain := c.d.settings().Stop.Drain
	if p.DrainMS >= 0 {
		drain = time.Duration(p.DrainMS) * time.Millisecond
	}
	r.Reply(acp.Empty)
	select {
	case c.d.stop <- drain:
		c.d.log.Info("asked to stop", "by", who.Display())
	default: // it is stopping already
	}
	return nil, errLater
}

func configGet(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	var p gladhand.ConfigProp
	if err := configParams(c, r, &p); err != nil {
		return nil, err
	}
	value, err := c.d.config.Get(p.Prop)
	return gladhand.ConfigProp{Prop: p.Prop, Value: value}, err
}

func configParams(c *conn, r *rpc.Request, p any) error {
	if err := c.identity().May(gladhand.Observe); err != nil {
		return err
	}
	return rpc.DecodeParams(r.Params, p)
}

func configSet(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.ConfigProp
	if err := configParams(c, r, &p); err != nil {
		return nil, err
	}
	who := c.identity()
	if err := who.May(gladhand.Configure); err != nil {
		return nil, err
	}
	if err := c.d.config.Set(ctx, p.Prop, p.Value); err != nil {
		return nil, err
	}
	c.d.configured()
	c.d.log.Info("a setting was changed", "prop", p.Prop, "by", who.Display())
	value, err := c.d.config.Get(p.Prop)
	return gladhand.ConfigProp{Prop: p.Prop, Value: value}, err
}

func configList(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	if err := configParams(c, r, &struct{}{}); err != nil {
		return nil, err
	}
	list, err := c.d.config.List()
	return map[string]any{"settings": list}, err
}

func configValidate(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	var p struct {
		Text string `json:"text"`
	}
	if err := configParams(c, r, &p); err != nil {
		return nil, err
	}
	if err := c.d.config.Validate([]byte(p.Text)); err != nil {
		return nil, err
	}
	return map[string]bool{"valid": true}, nil
}

const (
	logLinesDefault = 100
	logLinesMax     = 2000
	logBytesMax     = 1 << 20
)

// logQuery reads the end of the daemon's log file.
func logQuery(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	var p struct {
		Lines int `json:"lines"`
	}
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	if err := c.identity().May(gladhand.Manage); err != nil {
		return nil, err
	}
	if p.Lines == 0 {
		p.Lines = logLinesDefault
	}
	if p.Lines < 1 || p.Lines > logLinesMax {
		return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "lines must be 1 to %d", logLinesMax)
	}
	text, err := tail(c.d.opts.LogFile, logBytesMax)
	if err != nil {
		return nil, err
	}
	lines := []string{}
	for line := range bytes.Lines(text) {
		lines = append(lines, string(bytes.TrimRight(line, "\r\n")))
	}
	return map[string]any{"lines": lines[max(0, len(lines)-p.Lines):]}, nil
}

// tail returns at most the last limit bytes of a file, from the beginning of a line.
func tail(path string, limit int64) ([]byte, error) {
	if path == "" {
		return nil, gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonUnavailable, "this daemon writes its log to standard error, not to a file")
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := st.Size() - limit
	if from <= 0 {
		return io.ReadAll(f)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, from, limit))
	if err != nil {
		return nil, err
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return text, nil
}
