package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"

	"gladhand"
)

// Keyring keeps keys for people. Its methods may wait for one, and take no
// context: use [Keys].
type Keyring interface {
	Get(account string) (string, error)
	Set(account, key string) error
	Delete(account string) error
}

// ErrNoKey says that the keyring has no such key.
var ErrNoKey = errors.New("the keyring has no such key")

// SystemKeyring is the system's: the Secret Service of a Linux desktop, macOS'
// keychain, Windows' credentials. Keys are there under the service "gladhand".
func SystemKeyring() Keyring { return systemKeyring{} }

const keyringService = "gladhand"

type systemKeyring struct{}

func (systemKeyring) Get(account string) (string, error) {
	if err := noBus(); err != nil {
		return "", err
	}
	key, err := keyring.Get(keyringService, account)
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNoKey
	}
	return key, err
}

func (systemKeyring) Set(account, key string) error {
	if err := noBus(); err != nil {
		return err
	}
	return keyring.Set(keyringService, account, key)
}

func (systemKeyring) Delete(account string) error {
	if err := noBus(); err != nil {
		return err
	}
	err := keyring.Delete(keyringService, account)
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNoKey
	}
	return err
}

// noBus says that there is no session bus to find the Secret Service on. The
// library would start one of its own, with nobody on it.
func noBus() error {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return nil
	}
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Getuid())} {
		if _, err := os.Stat(filepath.Join(dir, "bus")); dir != "" && err == nil {
			return nil
		}
	}
	return errors.New("no session bus")
}

// Keys finds what references in the settings mean.
type Keys struct {
	// Env is the environment; nil is the process' own.
	Env func(string) string
	// Keyring is nil for the system's.
	Keyring Keyring
	// Patience is how long the keyring may take, which may ask a person to unlock
	// it; 0 is 2 s.
	Patience time.Duration
}

func (k Keys) env(name string) string {
	if k.Env == nil {
		return os.Getenv(name)
	}
	return k.Env(name)
}

// Resolve returns the text that a secret is or refers to. account is where
// "keyring:" looks. The error, for people, names the variable or the account,
// never a key.
func (k Keys) Resolve(ctx context.Context, s gladhand.Secret, account string) (string, error) {
	kind, name := s.Reference()
	switch kind {
	case "env":
		if text := k.env(name); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("the variable %s is not set", name)
	case "keyring":
		if name == "" {
			name = account
		}
		return k.get(ctx, name)
	}
	return s.Reveal(), nil
}

func (k Keys) get(ctx context.Context, account string) (string, error) {
	var key string
	err := k.patiently(ctx, func(ring Keyring) (err error) {
		var got string
		if got, err = ring.Get(account); err == nil {
			key = got
		}
		return err
	})
	switch {
	case errors.Is(err, ErrNoKey):
		return "", fmt.Errorf("the keyring has no key %q: %w", account, ErrNoKey)
	case err != nil:
		return "", err
	case key == "":
		return "", fmt.Errorf("the key %q in the keyring is empty", account)
	}
	return key, nil
}

// Store puts a key into the keyring, Forget removes it, and Probe reports whether
// there is a keyring at all: nil, or why not.
func (k Keys) Store(ctx context.Context, account, key string) error {
	return k.patiently(ctx, func(ring Keyring) error { return ring.Set(account, key) })
}

// Forget removes a key from the keyring; [ErrNoKey] when there is none.
func (k Keys) Forget(ctx context.Context, account string) error {
	return k.patiently(ctx, func(ring Keyring) error { return ring.Delete(account) })
}

// Probe reports why there is no keyring to be used, or nil.
func (k Keys) Probe(ctx context.Context) error {
	err := k.patiently(ctx, func(ring Keyring) error { _, err := ring.Get("probe"); return err })
	if errors.Is(err, ErrNoKey) {
		return nil
	}
	return err
}

// errKeyring says that the keyring cannot be used; the cause, which some systems
// fill with the command they ran, stays inside.
type errKeyring struct{ err error }

func (e *errKeyring) Error() string {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return "the keyring did not answer; is it locked?"
	}
	return "there is no keyring here"
}

func (e *errKeyring) Unwrap() error { return e.err }

// patiently runs f, which cannot be interrupted, and goes on without it when it
// takes too long.
func (k Keys) patiently(ctx context.Context, f func(Keyring) error) error {
	ring, patience := k.Keyring, k.Patience
	if ring == nil {
		ring = SystemKeyring()
	}
	if patience == 0 {
		patience = 2 * time.Second
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ring) }()
	select {
	case err := <-done:
		if err == nil || errors.Is(err, ErrNoKey) {
			return err
		}
		return &errKeyring{err}
	case <-waiting.Done():
		if err := ctx.Err(); err != nil {
			return err
		}
		return &errKeyring{waiting.Err()}
	}
}
