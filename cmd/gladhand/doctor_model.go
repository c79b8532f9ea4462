package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"time"

	"gladhand/config"
	"gladhand/model"
)

// model looks whether what new sessions are set to use is there, and how models
// are reached.
func (d *examination) model(ctx context.Context) {
	reg, set, err := d.a.registry()
	if err != nil {
		return // found before
	}
	reg.Refresh(ctx)
	id := reg.Default()
	_, err = reg.Find(id)
	var fault *model.Error
	switch {
	case set.Agent != builtIn:
		d.add("agent", "bad", fmt.Sprintf("the setting agent is %q, which this version does not have", set.Agent), "gladhand config set agent "+builtIn)
	case errors.As(err, &fault):
		d.add("model", "bad", fmt.Sprintf("new sessions use %s, since %s: %s", id, reg.Why(), fault.Text), fault.Mend)
	case id == offlineModel:
		d.add("model", "ok", offlineModel+", since "+reg.Why()+": plain requests, no key and no network", "gladhand models lists those that there are")
	default:
		d.add("model", "ok", fmt.Sprintf("new sessions use %s, since %s", id, reg.Why()), "")
	}
	for _, p := range reg.Providers(false) {
		d.provider(p, set)
	}
	d.network(set)
	d.keyring(ctx, set)
}

// provider says of one that is configured, or has a key, whether it can be used.
func (d *examination) provider(p model.ProviderInfo, set config.Settings) {
	switch {
	case p.ID == model.OfflineID, set.Providers[p.ID].Disabled:
	case p.Ready && p.Key != "":
		d.add("provider", "ok", fmt.Sprintf("%s: %s, key from %s", p.ID, count(len(p.Models), "model"), p.Key), "")
	case p.Ready:
		d.add("provider", "ok", fmt.Sprintf("%s: %s at %s", p.ID, count(len(p.Models), "model"), p.URL), "")
	case p.Configured || p.Key != "":
		d.add("provider", "bad", p.ID+": "+p.Why, p.Mend)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// network says which proxy and which certificates are used. R191.
func (d *examination) network(set config.Settings) {
	n := networkOf(set)
	if _, err := model.NewHTTPClient(n); err != nil {
		d.add("network", "bad", err.Error(), "gladhand config set network.ca or network.proxy")
		return
	}
	proxy, err := n.ProxyFunc()
	if err != nil {
		d.add("network", "bad", err.Error(), "gladhand config set network.proxy")
		return
	}
	text := "no proxy"
	if u := proxy(&url.URL{Scheme: "https", Host: "api.anthropic.com"}); u != nil {
		from := "the environment"
		if n.Proxy != "" {
			from = "the settings"
		}
		text = fmt.Sprintf("through the proxy %s://%s, which %s names", u.Scheme, u.Host, from)
	} else if n.Proxy == "none" {
		text = "no proxy: the settings say none"
	}
	if n.CA != "" {
		text += "; certificates in " + n.CA + " are trusted too"
	}
	d.add("network", "ok", text, "")
}

// keyring says whether the system keeps keys, and whether those in the settings
// file are for nobody else to read.
func (d *examination) keyring(ctx context.Context, set config.Settings) {
	keys := model.Keys{Patience: 5 * time.Second}
	needed, literal := false, false
	for _, p := range set.Providers {
		kind, _ := p.Key.Reference()
		needed = needed || kind == "keyring"
		literal = literal || kind == "" && !p.Key.Empty()
	}
	err := keys.Probe(ctx)
	switch {
	case err == nil:
		d.add("keyring", "ok", "keeps keys: gladhand models key PROVIDER", "")
	case needed:
		d.add("keyring", "bad", err.Error()+", and the settings have a key there", "use the environment: gladhand config set providers.NAME.key env:VARIABLE")
	default:
		d.add("keyring", "info", err.Error()+"; keys come from the environment or the settings file", "")
	}
	path, _ := d.a.settingsPath()
	if fi, err := os.Stat(path); literal && err == nil && runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 {
		d.add("settings", "bad", path+" has a key in it, and others may read it", "chmod 600 "+path)
	}
}
