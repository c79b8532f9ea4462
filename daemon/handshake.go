package daemon

import (
	"context"
	"encoding/json"
	"os"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
)

// initialize settles the version. It may be repeated until it succeeds, and
// after that only with the same version.
func initialize(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	in, err := acp.ParseInitialize(r.Params)
	if err != nil {
		return nil, err
	}
	version, err := in.Negotiate()
	if err != nil {
		return nil, err
	}
	if c.version != 0 && c.version != version {
		return nil, gladhand.Errorf(gladhand.CodeInvalidRequest, gladhand.ReasonInvalid, "this connection speaks version %d already", c.version)
	}
	var client gladhand.ClientMeta
	if m := acp.Meta(in.Meta, "gladhand"); m != nil {
		if err := json.Unmarshal(m, &client); err != nil {
			return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "_meta.gladhand cannot be read")
		}
	}
	c.mu.Lock()
	c.version, c.caps = version, in.Caps
	c.who.Label = in.Info.Name
	if client.Label != "" {
		c.who.Label = client.Label
	}
	who := c.who
	c.mu.Unlock()
	c.rpc.Ready()
	c.log.Debug("initialized", "version", version, "label", who.Label)
	return acp.InitializeResult(version, acp.Offer{
		MCP:  c.d.opts.CheckServers != nil,
		Info: acp.Implementation{Name: "gladhand", Title: "gladhand", Version: c.d.opts.Version},
		Meta: meta(gladhand.HandshakeMeta{
			Version: c.d.opts.Version, PID: os.Getpid(), Endpoint: c.d.opts.Place.Endpoint,
			Methods: methodNames(version), ClientID: who.Client, Rights: who.Rights, Name: who.Name,
		}),
	}), nil
}

func authenticate(*conn, context.Context, *rpc.Request) (any, error) {
	return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonUnsupported, "there is nothing to log in to: no authMethods are offered")
}

func logout(*conn, context.Context, *rpc.Request) (any, error) { return acp.Empty, nil }
