package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// A model that loops makes the same few calls with the same results again and
// again. It is told so once, and the turn ends when it goes on.
const (
	loopRounds = 3 // as often must a round of calls be repeated
	loopPeriod = 4 // and so many steps may it have
	loopWarned = "[You have made these same calls several times with the same results. Do something else, or say what is in the way.]"
)

// loop remembers the steps of a turn.
type loop struct {
	steps  []string // the newest last
	step   []string // what the current step has so far
	warned bool
	again  bool
}

// saw notes a call of the current step with its result.
func (l *loop) saw(name, args, result string) {
	h := sha256.New()
	for _, s := range []string{name, args, result} {
		io.WriteString(h, s)
		h.Write([]byte{0})
	}
	l.step = append(l.step, hex.EncodeToString(h.Sum(nil)))
}

// end ends the step, and reports whether the model should be told that it loops.
func (l *loop) end() (warn bool) {
	whole := ""
	for _, s := range l.step {
		whole += s
	}
	l.step = nil
	l.steps = append(l.steps, whole)
	if n := len(l.steps) - loopRounds*loopPeriod; n > 0 {
		l.steps = l.steps[n:]
	}
	if !l.loops() {
		return false
	}
	l.steps = nil // it takes as long again to be stopped
	l.again = l.warned
	l.warned = true
	return !l.again
}

// loops reports whether the newest steps are one round, repeated.
func (l *loop) loops() bool {
	for period := 1; period <= loopPeriod; period++ {
		n := len(l.steps) - loopRounds*period
		if n < 0 {
			return false
		}
		same := true
		for i := n; i < len(l.steps)-period; i++ {
			same = same && l.steps[i] == l.steps[i+period]
		}
		if same {
			return true
		}
	}
	return false
}

// stuck reports whether the model went on after it was told.
func (l *loop) stuck() bool { return l.again }
