package store

import (
	"context"
	"testing"

	"gladhand"
)

func TestSmoke(t *testing.T) {
	s, err := Open(context.Background(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Commit(t.Context(), func(tx *Tx) error {
		if err := tx.PutSession(Session{Info: gladhand.SessionInfo{ID: "a"}}); err != nil {
			return err
		}
		return tx.PutEvents("a", &gladhand.Event{First: 1, Last: 3, Update: []byte(`{}`)})
	})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := s.Events(t.Context(), "a", 0, 100)
	t.Log(ev, err)
	l, err := s.Sessions(t.Context())
	t.Log(l, err)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
