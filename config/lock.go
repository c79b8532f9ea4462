package config

import (
	"context"
	"time"

	"gladhand"
)

// lock keeps other processes from changing path until unlock is called. A
// holder is quick (it reads, writes and syncs), so waiting is short or futile.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		unlock, held, err := tryLock(path)
		if err != nil {
			return nil, failed(path, err)
		}
		if !held {
			return unlock, nil
		}
		t := time.NewTimer(5 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict, "another process is changing the settings file %s: try again", path)
		}
	}
}
