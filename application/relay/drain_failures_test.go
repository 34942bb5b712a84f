package relay_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
)

// A drain that fails in the store reports the error and its progress, and is retried later. A
// gate that has changed meanwhile is read again at once.
func TestDrainIsRetriedAfterStoreFailure(t *testing.T) {
	away, changed := errors.New("away"), fault.New(fault.PreconditionFailed, "", "changed")
	retry, skip, wrong := relay.Intent{Verb: relay.VerbRetry}, relay.Intent{Verb: relay.VerbSkip, Event: "a1"}, relay.Intent{Verb: relay.VerbSkip, Event: "a9"}
	none, all, rest := relay.DrainReport{Key: "a"}, relay.DrainReport{Key: "a", Sent: 3, Opened: true}, relay.DrainReport{Key: "a", Sent: 2, Skipped: true, Opened: true}
	for name, test := range map[string]struct {
		fails    map[string][]error // errors of the first calls; nil succeeds
		intent   relay.Intent
		reported []relay.DrainReport // all but the last are away
		sent     []string
	}{
		"gate":           {map[string][]error{"Gate": {away}}, retry, []relay.DrainReport{none, all}, []string{"a1", "a2", "a3"}},
		"events":         {map[string][]error{"First": {away}}, retry, []relay.DrainReport{none, all}, []string{"a1", "a2", "a3"}},
		"removal":        {map[string][]error{"Remove": {away}}, retry, []relay.DrainReport{none, all}, []string{"a1", "a2", "a3", "a1", "a2", "a3"}},
		"opening":        {map[string][]error{"Open": {away}}, retry, []relay.DrainReport{{Key: "a", Sent: 3}, {Key: "a", Opened: true}}, []string{"a1", "a2", "a3"}},
		"skip":           {map[string][]error{"Remove": {away}}, skip, []relay.DrainReport{none, rest}, []string{"a2", "a3"}},
		"giving up":      {map[string][]error{"Update": {away}}, wrong, []relay.DrainReport{none, none}, nil},
		"changed, gate":  {map[string][]error{"Update": {changed}, "Gate": {nil, away}}, wrong, []relay.DrainReport{none, none}, nil},
		"changed, open":  {map[string][]error{"Open": {changed}}, retry, []relay.DrainReport{all}, []string{"a1", "a2", "a3"}},
		"changed, skip":  {map[string][]error{"Remove": {changed}}, skip, []relay.DrainReport{rest}, []string{"a2", "a3"}},
		"changed, twice": {map[string][]error{"Remove": {changed, changed}}, retry, []relay.DrainReport{all}, []string{"a1", "a2", "a3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, mem := &broker{}, parkedtest.NewMemory()
				parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 3)
				setIntent(t, mem, "a", test.intent)
				reported := reports(t, hooked{mem, func(_ context.Context, call string) (err error) {
					if list := test.fails[call]; len(list) > 0 {
						err, test.fails[call] = list[0], list[1:]
					}
					return err
				}}, &owner{}, b, relay.DrainOptions{})
				for i := range reported {
					if isAway := errors.Is(reported[i].Err, away); isAway != (i < len(test.reported)-1) {
						t.Errorf("try %d: error %v", i, reported[i].Err)
					}
					reported[i].Err = nil
				}
				if diff := cmp.Diff(test.reported, reported); diff != "" {
					t.Errorf("reported (-want +got):\n%s", diff)
				}
				want(t, "sent", b.got["a"], test.sent...)
			})
		})
	}
}

// stale is a store that returns outdated intents.
type stale struct {
	*parkedtest.Memory
	gates []relay.Gate
}

func (s stale) Intents(context.Context) ([]relay.Gate, error) { return s.gates, nil }

// A gate that is open or has no intent is neither drained nor reported.
func TestGateWithoutIntentIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 3)
		before, intent := gateOf(t, mem, "a"), &relay.Intent{Verb: relay.VerbRetry}
		reported := reports(t, stale{mem, []relay.Gate{{Key: "none"}, {Key: "open", Intent: intent}, {Key: "a", Intent: intent}}}, &owner{}, b, relay.DrainOptions{})
		if diff := cmp.Diff(before, gateOf(t, mem, "a")); diff != "" || len(reported) != 0 || b.sent != 0 {
			t.Errorf("reported %+v, %d sent, gate (-want +got):\n%s", reported, b.sent, diff)
		}
	})
}

// A drain that stops for any reason reports its progress.
func TestDrainReportsPartialResult(t *testing.T) {
	for name, test := range map[string]struct {
		intent   relay.Intent
		lost     string // the call after which the range is no longer owned
		empty    bool   // no parked events
		reported relay.DrainReport
	}{
		"sent":    {relay.Intent{Verb: relay.VerbRetry}, "Remove", false, relay.DrainReport{Key: "a", Sent: 3}},
		"skipped": {relay.Intent{Verb: relay.VerbSkip, Event: "a1"}, "Remove", false, relay.DrainReport{Key: "a", Skipped: true}},
		"opened":  {relay.Intent{Verb: relay.VerbRetry}, "", true, relay.DrainReport{Key: "a", Opened: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, mem, ranges := &broker{}, parkedtest.NewMemory(), &owner{}
				parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 6)
				if test.empty {
					takeAll(t, mem, "a")
				}
				setIntent(t, mem, "a", test.intent)
				reported := reports(t, hooked{mem, once(test.lost, func() { ranges.away.Store(true) })}, ranges, b, relay.DrainOptions{})
				if len(reported) != 1 || errors.Is(reported[0].Err, relay.ErrNotOwned) != (test.lost != "") {
					t.Fatalf("reported %+v", reported)
				}
				reported[0].Err = nil
				if reported[0] != test.reported {
					t.Errorf("reported %+v, want %+v", reported[0], test.reported)
				}
			})
		})
	}
}

// An intent that arrives while an automatic drain is refused is tried, too. The refusal is
// unambiguous, so that it needs no accepted message as evidence.
func TestNewIntentSurvivesRefusalOfAutoClosedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, tries := parkedtest.NewMemory(), 0
		parkWaiting(t, newRelay(t, &broker{}, withParked(mem, relay.Options{})), "a")
		ann := relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now()}
		reported := reports(t, hooked{mem, once("Update", func() { setIntent(t, mem, "a", ann) })}, &owner{}, publisherFunc(func([]relay.Group) error {
			tries++
			return errTooLarge
		}), relay.DrainOptions{})
		if g := gateOf(t, mem, "a"); tries != 2 || len(reported) != 2 || g.Attempts != 2 || g.EffectiveIntent() != nil || g.Closing.Event != "a1" {
			t.Errorf("%d tries, reported %+v, gate %+v; want one try for the broker and one for ann", tries, reported, g)
		}
	})
}

// An intent that arrives during a send replaces the earlier one.
func TestNewIntentSurvivesPartialSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 3)
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now()})
		_ = reports(t, mem, &owner{}, publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			n := slices.IndexFunc(groups[0].Messages, func(m relay.Message) bool { return m.ID == "a2" })
			if n < 0 {
				return b.Publish(ctx, groups)
			}
			setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a2", By: "bob", At: time.Now()})
			groups[0].Messages = groups[0].Messages[:n]
			return errors.Join(&relay.PublishError{Keys: []relay.KeyError{{Sent: n, Err: errTooLarge}}}, b.Publish(ctx, groups))
		}), relay.DrainOptions{})
		want(t, "sent", b.got["a"], "a1", "a3")
	})
}

// An intent that was withdrawn during the drain is not dropped again.
func TestWithdrawnIntentIsNotDroppedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := parkedtest.NewMemory()
		parkAll(t, newRelay(t, &broker{}, withParked(mem, relay.Options{})), "a", 1)
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
		reported := reports(t, hooked{mem, once("Update", func() {
			g := gateOf(t, mem, "a")
			g.Intent = nil
			if _, err := mem.Update(t.Context(), g); err != nil {
				t.Error(err)
			}
		})}, &owner{}, publisherFunc(func([]relay.Group) error { return errTooLarge }), relay.DrainOptions{})
		if g := gateOf(t, mem, "a"); len(reported) != 1 || g.Intent != nil || g.Attempts != 1 {
			t.Errorf("reported %+v, gate %+v", reported, g)
		}
	})
}

// The owner parks an event when the drainer has sent all others. The gate must not open over it.
func TestEventParkedBeforeTheGateIsReadIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkAll(t, r, "a", 1)
		setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry})
		parked := false
		_ = reports(t, hooked{mem, func(_ context.Context, call string) error {
			if call == "Gate" && !parked && len(parkedIDs(t, mem, "a")) == 0 {
				parked = true
				if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a2 2")); failed != nil {
					t.Error(failed)
				}
			}
			return nil
		}}, &owner{}, b, relay.DrainOptions{})
		want(t, "sent", b.got["a"], "a1", "a2")
		want(t, "still parked", parkedIDs(t, mem, "a"))
	})
}

// A skip removes only the named event. If it is not the first, an automatically closed gate stays
// as it was.
func TestSkipRemovesOnlyNamedEvent(t *testing.T) {
	for name, test := range map[string]struct {
		event string
		empty bool
	}{"not the first": {"a2", false}, "no name": {"", false}, "nothing in line": {"a1", true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := parkedtest.NewMemory()
				parkWaiting(t, newRelay(t, &broker{}, withParked(mem, relay.Options{})), "a")
				before := gateOf(t, mem, "a")
				if test.empty {
					takeAll(t, mem, "a")
				}
				setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbSkip, Event: test.event})
				reported := reports(t, hooked{mem, func(_ context.Context, call string) error {
					if call == "Open" {
						return errBusy // keeps the gate for the assertion
					}
					return nil
				}}, &owner{}, publisherFunc(func([]relay.Group) error { return errBusy }), relay.DrainOptions{})
				if g := gateOf(t, mem, "a"); g.Closing != before.Closing || g.Intent != nil || g.Attempts != 1 || relay.ReasonOf(reported[0].Err) != "not_first" {
					t.Errorf("reported %+v, gate %+v; want it to wait as before", reported[0], g)
				}
			})
		})
	}
}
