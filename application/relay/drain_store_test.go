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

// meddled is a store of parked events with something that happens before each call. An error
// takes the place of the call.
type meddled struct {
	*parkedtest.Memory
	before func(ctx context.Context, call string) error
}

func (m meddled) Intents(ctx context.Context) ([]relay.Gate, error) {
	return meddle(ctx, m, "Intents", func() ([]relay.Gate, error) { return m.Memory.Intents(ctx) })
}

func (m meddled) Gate(ctx context.Context, key string) (relay.Gate, error) {
	return meddle(ctx, m, "Gate", func() (relay.Gate, error) { return m.Memory.Gate(ctx, key) })
}

func (m meddled) Update(ctx context.Context, g relay.Gate) (relay.Gate, error) {
	return meddle(ctx, m, "Update", func() (relay.Gate, error) { return m.Memory.Update(ctx, g) })
}

func (m meddled) First(ctx context.Context, key string, limit int) ([]relay.ParkedEvent, error) {
	return meddle(ctx, m, "First", func() ([]relay.ParkedEvent, error) { return m.Memory.First(ctx, key, limit) })
}

func (m meddled) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	return meddle(ctx, m, "Remove", func() (relay.Gate, error) { return m.Memory.Remove(ctx, g, events, skipped) })
}

func (m meddled) Open(ctx context.Context, g relay.Gate) error {
	_, err := meddle(ctx, m, "Open", func() (bool, error) { return true, m.Memory.Open(ctx, g) })
	return err
}

func meddle[V any](ctx context.Context, m meddled, call string, then func() (V, error)) (v V, err error) {
	if err := m.before(ctx, call); err != nil {
		return v, err
	}
	return then()
}

// once returns a hook that does do before the first such call.
func once(call string, do func()) func(context.Context, string) error {
	done := false
	return func(_ context.Context, name string) error {
		if name == call && !done {
			done = true
			do()
		}
		return nil
	}
}

// reports runs a drainer for an hour and returns what it told.
func reports(t *testing.T, lot relay.DrainStore, ranges relay.Ranges, p relay.Publisher, opts relay.DrainOptions) (list []relay.Drained) {
	t.Helper()
	opts.Now, opts.Batch = time.Now, 3
	opts.Drained = func(_ context.Context, d relay.Drained) { list = append(list, d) }
	d, err := relay.NewDrainer(lot, ranges, lineDecoder{}, p, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := d.Run(ctx); err != nil {
		t.Error(err)
	}
	return list
}

// A drain that the store stops tells why and what was done before, and is tried again. What
// has changed behind its back is looked at again at once.
func TestADrainGoesOnAfterTheStoreFailed(t *testing.T) {
	away, changed := errors.New("away"), fault.New(fault.PreconditionFailed, "", "changed")
	retry, skip, wrong := relay.Intent{Verb: relay.VerbRetry}, relay.Intent{Verb: relay.VerbSkip, Event: "a1"}, relay.Intent{Verb: relay.VerbSkip, Event: "a9"}
	none, all, rest := relay.Drained{Key: "a"}, relay.Drained{Key: "a", Sent: 3, Open: true}, relay.Drained{Key: "a", Sent: 2, Skip: true, Open: true}
	for name, test := range map[string]struct {
		fails  map[string][]error // of the first calls; nil: succeeds
		intent relay.Intent
		told   []relay.Drained // all but the last are away
		sent   []string
	}{
		"gate":           {map[string][]error{"Gate": {away}}, retry, []relay.Drained{none, all}, []string{"a1", "a2", "a3"}},
		"events":         {map[string][]error{"First": {away}}, retry, []relay.Drained{none, all}, []string{"a1", "a2", "a3"}},
		"removal":        {map[string][]error{"Remove": {away}}, retry, []relay.Drained{none, all}, []string{"a1", "a2", "a3", "a1", "a2", "a3"}},
		"opening":        {map[string][]error{"Open": {away}}, retry, []relay.Drained{{Key: "a", Sent: 3}, {Key: "a", Open: true}}, []string{"a1", "a2", "a3"}},
		"skip":           {map[string][]error{"Remove": {away}}, skip, []relay.Drained{none, rest}, []string{"a2", "a3"}},
		"giving up":      {map[string][]error{"Update": {away}}, wrong, []relay.Drained{none, none}, nil},
		"changed, gate":  {map[string][]error{"Update": {changed}, "Gate": {nil, away}}, wrong, []relay.Drained{none, none}, nil},
		"changed, open":  {map[string][]error{"Open": {changed}}, retry, []relay.Drained{all}, []string{"a1", "a2", "a3"}},
		"changed, skip":  {map[string][]error{"Remove": {changed}}, skip, []relay.Drained{rest}, []string{"a2", "a3"}},
		"changed, twice": {map[string][]error{"Remove": {changed, changed}}, retry, []relay.Drained{all}, []string{"a1", "a2", "a3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, lot := &broker{}, parkedtest.NewMemory()
				parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 3)
				intend(t, lot, "a", test.intent)
				told := reports(t, meddled{lot, func(_ context.Context, call string) (err error) {
					if list := test.fails[call]; len(list) > 0 {
						err, test.fails[call] = list[0], list[1:]
					}
					return err
				}}, &owner{}, b, relay.DrainOptions{})
				for i := range told {
					if isAway := errors.Is(told[i].Err, away); isAway != (i < len(test.told)-1) {
						t.Errorf("try %d: error %v", i, told[i].Err)
					}
					told[i].Err = nil
				}
				if diff := cmp.Diff(test.told, told); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				want(t, "sent", b.got["a"], test.sent...)
			})
		})
	}
}

// stale is a store that tells each time what was wanted once.
type stale struct {
	*parkedtest.Memory
	gates []relay.Gate
}

func (s stale) Intents(context.Context) ([]relay.Gate, error) { return s.gates, nil }

// What was opened, or is not wanted any more, is no try.
func TestAGateThatNobodyWantsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 3)
		before, intent := gateOf(t, lot, "a"), &relay.Intent{Verb: relay.VerbRetry}
		told := reports(t, stale{lot, []relay.Gate{{Key: "none"}, {Key: "open", Intent: intent}, {Key: "a", Intent: intent}}}, &owner{}, b, relay.DrainOptions{})
		if diff := cmp.Diff(before, gateOf(t, lot, "a")); diff != "" || len(told) != 0 || b.sent != 0 {
			t.Errorf("told %+v, %d sent, gate (-want +got):\n%s", told, b.sent, diff)
		}
	})
}

// What a drain did is told also if it did not come further, for whatever reason.
func TestWhatADrainDidIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		intent relay.Intent
		lost   string // the call after which the range is not owned any more
		empty  bool   // nothing stands behind the gate
		told   relay.Drained
	}{
		"sent":    {relay.Intent{Verb: relay.VerbRetry}, "Remove", false, relay.Drained{Key: "a", Sent: 3}},
		"skipped": {relay.Intent{Verb: relay.VerbSkip, Event: "a1"}, "Remove", false, relay.Drained{Key: "a", Skip: true}},
		"opened":  {relay.Intent{Verb: relay.VerbRetry}, "", true, relay.Drained{Key: "a", Open: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, lot, ranges := &broker{}, parkedtest.NewMemory(), &owner{}
				parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 6)
				if test.empty {
					takeAll(t, lot, "a")
				}
				intend(t, lot, "a", test.intent)
				told := reports(t, meddled{lot, once(test.lost, func() { ranges.away.Store(true) })}, ranges, b, relay.DrainOptions{})
				if len(told) != 1 || errors.Is(told[0].Err, relay.ErrNotOwned) != (test.lost != "") {
					t.Fatalf("told %+v", told)
				}
				told[0].Err = nil
				if told[0] != test.told {
					t.Errorf("told %+v, want %+v", told[0], test.told)
				}
			})
		})
	}
}

// What an operator asks for while a key that waited is refused is tried, too. The refusal is
// the message's for certain, whether anything was accepted or not.
func TestAnIntentOutlivesTheRefusalOfAKeyThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot, tries := parkedtest.NewMemory(), 0
		parkWaiting(t, newRelay(t, &broker{}, withLot(lot, relay.Options{})), "a")
		ann := relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now()}
		told := reports(t, meddled{lot, once("Update", func() { intend(t, lot, "a", ann) })}, &owner{}, publisherFunc(func([]relay.Group) error {
			tries++
			return errTooLarge
		}), relay.DrainOptions{})
		if g := gateOf(t, lot, "a"); tries != 2 || len(told) != 2 || g.Attempts != 2 || g.Wanted() != nil || g.Closing.Event != "a1" {
			t.Errorf("%d tries, told %+v, gate %+v; want one try for the broker and one for ann", tries, told, g)
		}
	})
}

// An operator who asks for something else while events are sent is not held to what was
// wanted before.
func TestAnIntentOutlivesARefusalBehindWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 3)
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now()})
		_ = reports(t, lot, &owner{}, publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			n := slices.IndexFunc(groups[0].Messages, func(m relay.Message) bool { return m.ID == "a2" })
			if n < 0 {
				return b.Publish(ctx, groups)
			}
			intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: "a2", By: "bob", At: time.Now()})
			groups[0].Messages = groups[0].Messages[:n]
			return errors.Join(&relay.PublishError{Keys: []relay.KeyError{{Sent: n, Err: errTooLarge}}}, b.Publish(ctx, groups))
		}), relay.DrainOptions{})
		want(t, "sent", b.got["a"], "a1", "a3")
	})
}

// An intent that was taken back is not given up a second time.
func TestAnIntentTakenBackIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot := parkedtest.NewMemory()
		parkAll(t, newRelay(t, &broker{}, withLot(lot, relay.Options{})), "a", 1)
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		told := reports(t, meddled{lot, once("Update", func() {
			g := gateOf(t, lot, "a")
			g.Intent = nil
			if _, err := lot.Update(t.Context(), g); err != nil {
				t.Error(err)
			}
		})}, &owner{}, publisherFunc(func([]relay.Group) error { return errTooLarge }), relay.DrainOptions{})
		if g := gateOf(t, lot, "a"); len(told) != 1 || g.Intent != nil || g.Attempts != 1 {
			t.Errorf("told %+v, gate %+v", told, g)
		}
	})
}

// Only the event that an operator names is left out, and a key that waits goes on waiting.
func TestNothingIsLeftOutThatNobodyNamed(t *testing.T) {
	for name, test := range map[string]struct {
		event string
		empty bool
	}{"not the first": {"a2", false}, "no name": {"", false}, "nothing in line": {"a1", true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lot := parkedtest.NewMemory()
				parkWaiting(t, newRelay(t, &broker{}, withLot(lot, relay.Options{})), "a")
				before := gateOf(t, lot, "a")
				if test.empty {
					takeAll(t, lot, "a")
				}
				intend(t, lot, "a", relay.Intent{Verb: relay.VerbSkip, Event: test.event})
				told := reports(t, meddled{lot, func(_ context.Context, call string) error {
					if call == "Open" {
						return errBusy // the gate stays, for us to see
					}
					return nil
				}}, &owner{}, publisherFunc(func([]relay.Group) error { return errBusy }), relay.DrainOptions{})
				if g := gateOf(t, lot, "a"); g.Closing != before.Closing || g.Intent != nil || g.Attempts != 1 || relay.ReasonOf(told[0].Err) != "not_first" {
					t.Errorf("told %+v, gate %+v; want it to wait as before", told[0], g)
				}
			})
		})
	}
}

// takeAll takes away all that stands behind the gate of key.
func takeAll(t *testing.T, lot *parkedtest.Memory, key string) {
	t.Helper()
	events, err := lot.First(t.Context(), key, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lot.Remove(t.Context(), gateOf(t, lot, key), events, nil); err != nil {
		t.Fatal(err)
	}
}

// A relay that cannot read the store says so, and sends nothing else instead.
func TestARetryFromAStoreThatCannotBeReadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		parkAll(t, newRelay(t, b, withLot(lot, relay.Options{})), "a", 1)
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry, FromStore: true})
		told := reports(t, lot, &owner{}, b, relay.DrainOptions{})
		if len(told) != 1 || relay.ReasonOf(told[0].Err) != "not_stored" || b.sent != 0 {
			t.Errorf("told %+v, %d sent; want it given up", told, b.sent)
		}
	})
}
