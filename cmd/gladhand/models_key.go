package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gladhand/client"
	"gladhand/config"
	"gladhand/model"
)

func (a *app) modelsKey() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use: "key PROVIDER", Short: "Keep a provider's key in the system's keyring",
		Example: "  gladhand models key anthropic            asks for it, and does not show it\n  gladhand models key local < key.txt\n  gladhand models key anthropic --delete",
		Long: "Reads a key and keeps it in the system's keyring; the settings then say\n" +
			"providers.PROVIDER.key = \"keyring:\". With --delete it is removed again.",
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remove {
				return a.dropKey(cmd.Context(), args[0])
			}
			return a.keepKey(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "remove the key from the keyring")
	return cmd
}

// forKeys are patient: a person may have to unlock the keyring.
func forKeys() model.Keys { return model.Keys{Patience: time.Minute} }

func (a *app) keepKey(ctx context.Context, provider string) error {
	p, err := a.provider(provider)
	if err != nil {
		return err
	}
	key, err := a.readKey(ctx, p)
	if err != nil {
		return err
	}
	if err := forKeys().Store(ctx, p.ID, key); err != nil {
		return a.noKeyring(p, err)
	}
	if err := a.setKey(ctx, p.ID, "keyring:"); err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]any{"provider": p.ID, "stored": true})
	}
	a.print("The key of %s is in the keyring, and the settings say so. `gladhand models %s` lists its models.", p.ID, p.ID)
	return nil
}

func (a *app) dropKey(ctx context.Context, provider string) error {
	p, err := a.provider(provider)
	if err != nil {
		return err
	}
	switch err := forKeys().Forget(ctx, p.ID); {
	case errors.Is(err, model.ErrNoKey):
		return &exitError{exitFailed, fmt.Errorf("the keyring has no key of %s", p.ID)}
	case err != nil:
		return a.noKeyring(p, err)
	}
	path, _ := a.settingsPath()
	if f, err := config.Open(path); err == nil && f.Settings().Providers[p.ID].Key.Reveal() == "keyring:" {
		if err := a.setKey(ctx, p.ID, ""); err != nil {
			return err
		}
	}
	if a.json {
		return a.emit(map[string]any{"provider": p.ID, "stored": false})
	}
	a.print("The key of %s is no longer in the keyring.", p.ID)
	return nil
}

// provider is one that there is: in the catalogue or in the settings.
func (a *app) provider(id string) (model.ProviderInfo, error) {
	reg, _, err := a.registry()
	if err != nil {
		return model.ProviderInfo{}, err
	}
	list := reg.Providers(true)
	i := slices.IndexFunc(list, func(p model.ProviderInfo) bool { return p.ID == id && id != model.OfflineID })
	if i >= 0 {
		return list[i], nil
	}
	best, at := "", 3
	for _, p := range list {
		if d := distance(id, p.ID); d < at {
			best, at = p.ID, d
		}
	}
	if best != "" {
		return model.ProviderInfo{}, usage(fmt.Errorf("there is no provider %q; did you mean %s?", id, best))
	}
	return model.ProviderInfo{}, usage(fmt.Errorf("there is no provider %q; `gladhand models --all` lists them, and the setting providers adds one", id))
}

// keyMax bounds a key, in bytes; Windows keeps no longer ones.
const keyMax = 2500

// readKey reads a key from the terminal without an echo, else from standard input.
func (a *app) readKey(ctx context.Context, p model.ProviderInfo) (string, error) {
	var raw []byte
	var err error
	if isTerminal(a.in) {
		raw, err = a.typeKey(ctx, p.ID)
	} else {
		raw, err = io.ReadAll(io.LimitReader(a.in, keyMax+2))
	}
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(raw))
	switch {
	case key == "":
		return "", usage(errors.New("no key was given"))
	case len(key) > keyMax || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "", usage(fmt.Errorf("that is no key: it must be one word of at most %d bytes", keyMax))
	}
	return key, nil
}

// typeKey reads a line that is not shown. An interrupt gives the echo back.
func (a *app) typeKey(ctx context.Context, provider string) ([]byte, error) {
	fd := int(a.in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	_, _ = fmt.Fprintf(a.err, "Key of %s (it is not shown): ", provider)
	type line struct {
		text []byte
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		typed <- line{text, err}
	}()
	defer func() { _, _ = fmt.Fprintln(a.err) }()
	select {
	case l := <-typed:
		return l.text, l.err
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return nil, context.Canceled
	}
}

// noKeyring says what else there is where no keyring is.
func (a *app) noKeyring(p model.ProviderInfo, err error) error {
	other := fmt.Sprintf("write it into the settings file, as providers.%s.key", p.ID)
	if len(p.Variables) > 0 {
		other = "set " + p.Variables[0] + " where the daemon is started, or " + other
	}
	path, _ := a.settingsPath()
	return &exitError{exitUnavailable, fmt.Errorf("%w: %s (%s)", err, other, path)}
}

// setKey changes the setting, through the daemon if one runs.
func (a *app) setKey(ctx context.Context, provider, value string) error {
	prop, raw := "providers."+provider+".key", json.RawMessage(fmt.Sprintf("%q", value))
	o, err := a.options("cli")
	if err != nil {
		return err
	}
	o.NoStart = true
	if c, err := client.Connect(ctx, o); err == nil {
		defer c.Close()
		return c.ConfigSet(ctx, prop, raw)
	}
	path, _ := a.settingsPath()
	f, err := config.Open(path)
	if err != nil {
		return err
	}
	return f.Set(ctx, prop, raw)
}
