package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

func TestADrainerNeedsItsPorts(t *testing.T) {
	lot, ranges, b := parkedtest.NewMemory(), &owner{}, &broker{}
	for name, err := range map[string]error{
		"store":     drainerError(nil, ranges, lineDecoder{}, b, relay.DrainOptions{Now: time.Now}),
		"ranges":    drainerError(lot, nil, lineDecoder{}, b, relay.DrainOptions{Now: time.Now}),
		"decoder":   drainerError(lot, ranges, nil, b, relay.DrainOptions{Now: time.Now}),
		"publisher": drainerError(lot, ranges, lineDecoder{}, nil, relay.DrainOptions{Now: time.Now}),
		"Now":       drainerError(lot, ranges, lineDecoder{}, b, relay.DrainOptions{}),
		"Poll":      drainerError(lot, ranges, lineDecoder{}, b, relay.DrainOptions{Now: time.Now, Poll: -1}),
		"Batch":     drainerError(lot, ranges, lineDecoder{}, b, relay.DrainOptions{Now: time.Now, Batch: -1}),
		"large":     drainerError(lot, ranges, lineDecoder{}, b, relay.DrainOptions{Now: time.Now, Batch: 91}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := drainerError(lot, ranges, lineDecoder{}, b, relay.DrainOptions{Now: time.Now}); err != nil {
		t.Error(err)
	}
}

func drainerError(store relay.DrainStore, ranges relay.Ranges, decoder relay.Decoder, p relay.Publisher, opts relay.DrainOptions) error {
	_, err := relay.NewDrainer(store, ranges, decoder, p, opts)
	return err
}

// A drainer looks each 5 s and sends 90 events in one step if nobody wants it otherwise.
func TestTheDefaultsOfADrainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot := parkedtest.NewMemory()
		parkAll(t, newRelay(t, &broker{}, withLot(lot, relay.Options{})), "a", 150)
		intend(t, lot, "a", relay.Intent{Verb: relay.VerbRetry})
		ctx, cancel := context.WithCancel(t.Context())
		var looks []time.Time
		var sizes []string
		d, err := relay.NewDrainer(meddled{lot, func(_ context.Context, call string) error {
			if call == "Intents" {
				if looks = append(looks, time.Now()); len(looks) == 10 {
					cancel()
				}
			}
			return nil
		}}, &owner{}, lineDecoder{}, publisherFunc(func(groups []relay.Group) error {
			sizes = append(sizes, fmt.Sprint(len(groups[0].Messages)))
			return nil
		}), relay.DrainOptions{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
		want(t, "batches", sizes, "90", "60")
		for n := range looks[1:] {
			if pause := looks[n+1].Sub(looks[n]); pause < 4*time.Second || pause > 6*time.Second {
				t.Errorf("a look %s after the one before, want about 5 s", pause)
			}
		}
	})
}

// The end is no failure: neither of the store, nor of a key that the look did not come to.
func TestTheEndOfADrainerIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		d := newDrainer(t, meddled{parkedtest.NewMemory(), func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}}, &broker{}, relay.DrainOptions{LookFailed: func(_ context.Context, err error) { t.Error(err) }}, nil)
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		lot, calls, ranges := parkedtest.NewMemory(), 0, &owner{}
		parkWaiting(t, newRelay(t, &broker{}, withLot(lot, relay.Options{})), "a", "b")
		ctx, cancel := context.WithCancel(t.Context())
		d := newDrainerOf(t, lot, ranges, publisherFunc(func([]relay.Group) error {
			calls++
			cancel()
			return errBusy
		}), relay.DrainOptions{}, nil)
		if err := d.Run(ctx); err != nil || calls != 1 || ranges.steps.Load() != 1 {
			t.Errorf("error %v, %d sends, %d steps; want one of each", err, calls, ranges.steps.Load())
		}
	})
}

// A broker that refuses is there: its answer ends no look.
func TestALookGoesOnAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot, calls := parkedtest.NewMemory(), 0
		r := newRelay(t, &broker{}, withLot(lot, relay.Options{}))
		for n := range 12 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		run(t, newDrainer(t, lot, publisherFunc(func([]relay.Group) error {
			if calls++; calls%3 == 0 {
				return errTooLarge
			}
			return errBusy
		}), relay.DrainOptions{}, nil))
		settle(time.Second)
		if calls != 12 {
			t.Errorf("%d keys were tried, want all", calls)
		}
	})
}

// However many keys belong to others, a look comes to the own ones.
func TestALookPassesWhatOthersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, lot := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withLot(lot, relay.Options{}))
		for n := range 20 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		parkWaiting(t, r, "mine")
		run(t, newDrainerOf(t, lot, only("mine"), b, relay.DrainOptions{}, nil))
		settle(time.Second)
		if b.sent != 1 {
			t.Errorf("sent %v, want the event of the own key", b.got)
		}
	})
}

// only is the ownership of one key.
type only string

func (o only) Own(ctx context.Context, key string, do func(context.Context) error) error {
	if key != string(o) {
		return errors.Join(relay.ErrNotOwned, errors.New("another's"))
	}
	return do(ctx)
}
