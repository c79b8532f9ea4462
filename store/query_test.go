package store

import "testing"

// Every query has a text, and one that SQLite accepts.
func TestQueries(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	if err := s.read(t.Context(), func(c *conn) error {
		for q, text := range queries {
			if text == "" {
				t.Errorf("query %d has no text", q)
			} else if _, err := c.Prepare(text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
