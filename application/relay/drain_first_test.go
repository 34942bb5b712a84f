package relay_test

import (
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// What the broker accepted before it had the key is no sign that a refusal of the key's
// first try is the message's fault.
func TestWhatWasAcceptedBeforeTheFirstTryProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		parkAll(t, r, "a", 1)
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, nil))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Minute)
		b.mu.Lock()
		b.fail = failing(&relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}, "b")
		sent := b.sent
		b.mu.Unlock()
		parkWaiting(t, r, "b")
		settle(time.Hour)
		if g, err := lot.Gate(t.Context(), "b"); err != nil || !g.Closing.Auto || sent != 1 {
			t.Errorf("%d sent, gate %+v, %v; want it to wait for the broker", sent, g, err)
		}
	})
}

// An operator who wants a key sent hears that it was refused, also while nothing else is accepted.
func TestAnOperatorHearsOfADoubtfulRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot, drained := &broker{fail: failing(errNotAllowed, "a")}, parkedtest.NewMemory(), &told{}
		parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 1)
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, drained))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(time.Minute)
		if g, err := lot.Gate(t.Context(), "a"); err != nil || g.Intent != nil || g.Attempts != 1 {
			t.Errorf("gate %+v, %v; want the intent given up at the first try", g, err)
		}
		if lines := drained.all(); len(lines) != 1 || lines[0] != "a sent 0 differ 0 skip false open false not_allowed" {
			t.Errorf("told %q", lines)
		}
	})
}

// Whoever follows a drain is told what was left out, and that the gate is open.
func TestADrainTellsWhatItDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot, drained := &broker{}, parkedtest.NewMemory(), &told{}
		parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 3)
		run(t, newDrainer(t, lot, b, relay.DrainOptions{}, drained))
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a1", At: time.Now()})
		settle(time.Minute)
		if lines := drained.all(); len(lines) != 1 || lines[0] != "a sent 2 differ 0 skip true open true unknown" {
			t.Errorf("told %q", lines)
		}
	})
}
