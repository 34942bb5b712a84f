package changefeed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// madeStore is a lease store of one record that answers as a test says.
type madeStore struct {
	LeaseStore
	replace func(Record) (string, error)
	read    func() (Record, error)
}

func (s *madeStore) Replace(_ context.Context, r Record) (string, error) { return s.replace(r) }

func (s *madeStore) Read(context.Context, string) (Record, error) { return s.read() }

// taken is the record of a lease that host a has.
func taken() Lease {
	return Lease{
		ID: "p..-FF", ETag: "taken", Version: 1, Token: "-FF", Range: FullRange(), Mode: modeIncremental,
		Owner: "a", Incarnation: "1", Epoch: 2, Expiry: 20 * time.Second,
	}
}

// keeperOf keeps the lease, which was taken just now. A nil clock is the system's.
func keeperOf(t *testing.T, store LeaseStore, c *manualClock, obs *Observer) (context.Context, *keeper) {
	t.Helper()
	o := &Options{}
	if c != nil {
		o.Clock, o.Now = c, c.Now
	}
	opts, err := o.resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := clocks{clock: opts.Clock, wall: opts.Now}
	ctx, f := newFence(t.Context(), w, w.read(), opts.Expiry-opts.margin())
	return ctx, newKeeper(&env{store: store, opts: opts, clock: opts.Clock, obs: obs}, taken(), f, w.read().monotonic, newSignal())
}

// A change is stored as soon as it asks for, and who needs no write soon wakes nobody.
func TestWhenAChangeIsDue(t *testing.T) {
	for want, u := range map[time.Duration]urgency{0: now, time.Second: soon, 8 * time.Second: later} {
		c := &manualClock{now: time.Unix(100, 0)}
		_, k := keeperOf(t, nil, c, &Observer{})
		k.change(func(*Lease) urgency { return u })
		if d := k.due(); d < want*8/10 || d > want*12/10 || u == soon && d != want {
			t.Errorf("urgency %d: due in %s, want %s", u, d, want)
		}
		if woken := len(k.kick) == 1; woken != (u >= soon) {
			t.Errorf("urgency %d: woken %t", u, woken)
		}
	}
}

// What a write has stored makes no other one due.
func TestWhatIsStoredIsNotDue(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	store := &madeStore{replace: func(Record) (string, error) { return "next", nil }}
	_, k := keeperOf(t, store, c, &Observer{})
	for name, change := range map[string]func(){
		"many items": func() { k.advance(`"1"`, checkpointItems, 1, 1) },
		"an attempt": func() { k.change(func(*Lease) urgency { return now }) },
	} {
		if change(); k.due() != 0 {
			t.Errorf("%s: due in %s", name, k.due())
		}
		if err := k.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := k.due(); d < time.Second {
			t.Errorf("%s: the next write is due in %s", name, d)
		}
	}
}

// What is handled during a write counts for the next one.
func TestWhatIsHandledDuringAWriteCounts(t *testing.T) {
	store := &madeStore{}
	_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
	store.replace = func(Record) (string, error) {
		k.advance(`"2"`, checkpointItems-1, 2, 2)
		return "next", nil
	}
	k.advance(`"1"`, 100, 1, 1)
	if err := k.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := k.due(); d == 0 {
		t.Errorf("due at once with %d items", k.items)
	}
	if k.advance(`"3"`, 1, 3, 3); k.due() != 0 {
		t.Errorf("%d items were handled since what the last write has stored, and the next is due in %s", checkpointItems, k.due())
	}
}

// The record says when it was written, and the observer is told of the whole write.
func TestAWriteIsTold(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	store := &madeStore{replace: func(r Record) (string, error) {
		if l, err := decodeLease(r); err != nil || !l.Timestamp.Equal(c.now) {
			t.Errorf("stored %+v, error %v; want the time of the write, %s", l, err, c.now)
		}
		c.now = c.now.Add(3 * time.Second)
		return "next", nil
	}}
	var told []CheckpointWritten
	_, k := keeperOf(t, store, c, &Observer{CheckpointWritten: func(e CheckpointWritten) { told = append(told, e) }})
	k.advance(`"7"`, 1, 7, 70)
	c.now = c.now.Add(time.Second)
	if err := k.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := CheckpointWritten{LeaseRef{"p..-FF", FullRange(), 2}, `"7"`, 7, 3 * time.Second}
	if len(told) != 1 || told[0] != want {
		t.Errorf("told %+v, want %+v", told, want)
	}
}

// kept runs a keeper in the background, in a bubble, and returns what it was told of errors.
func kept(t *testing.T, store LeaseStore) (ctx context.Context, k *keeper, told *[]LeaseError) {
	t.Helper()
	told = &[]LeaseError{}
	ctx, k = keeperOf(t, store, nil, &Observer{LeaseError: func(e LeaseError) { *told = append(*told, e) }})
	keep, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go k.run(keep)
	synctest.Wait()
	return ctx, k, told
}

// Who waits for a write has it at once, again and again, and also what can wait.
func TestAFlushIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, told := kept(t, &madeStore{replace: func(Record) (string, error) { return "next", nil }})
		for range 3 {
			began := time.Now()
			k.change(func(*Lease) urgency { return later })
			synctest.Wait()
			if err := k.flush(t.Context()); err != nil || time.Since(began) > 0 {
				t.Errorf("stored after %s, error %v", time.Since(began), err)
			}
		}
		synctest.Wait()
		if len(*told) != 0 {
			t.Errorf("told %+v", *told)
		}
	})
}

// A renewal that fails is told, and tried again with pauses that grow until one succeeds.
func TestRenewalsThatFailAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		_, _, told := kept(t, &madeStore{replace: func(Record) (string, error) {
			if at = append(at, time.Since(began)); len(at) == 4 || len(at) > 6 {
				return "next", nil
			}
			return "", errTest
		}})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		last := time.Duration(0)
		for i, want := range []time.Duration{8000, 500, 1000, 2000, 8000, 500, 1000} {
			want *= time.Millisecond //nolint:durationcheck // a bare number of milliseconds until here
			if took := at[i] - last; took < want*8/10 || took > want*12/10 {
				t.Errorf("write %d came after %s, want some %s", i+1, took, want)
			}
			last = at[i]
		}
		if len(*told) != 5 {
			t.Errorf("told %+v, want the five that failed", *told)
		}
		for _, e := range *told {
			if e.Lease != "p..-FF" || e.Op != "renew" || !errors.Is(e.Err, errTest) {
				t.Errorf("told %+v", e)
			}
		}
	})
}

// What an operator wrote meanwhile costs neither time nor an error: it is taken over, and
// written again.
func TestAnOperatorsWriteIsNoError(t *testing.T) {
	theirs := taken()
	theirs.ETag, theirs.Request.Paused = "theirs", true
	answer := func() *madeStore {
		return &madeStore{
			replace: func(r Record) (string, error) {
				if r.ETag != "theirs" {
					return "", ErrETagMismatch
				}
				return "next", nil
			},
			read: func() (Record, error) {
				return Record{ID: theirs.ID, ETag: theirs.ETag, Body: theirs.encode().Body}, nil
			},
		}
	}
	synctest.Test(t, func(t *testing.T) {
		_, k, told := kept(t, answer())
		began := time.Now()
		err := k.renew(t.Context())
		synctest.Wait()
		if err != nil || time.Since(began) > 0 || len(*told) != 0 {
			t.Errorf("renewed after %s, error %v; told %+v", time.Since(began), err, *told)
		}
		if l := k.snapshot(); l.ETag != "next" || !l.Request.Paused || len(k.requested) != 1 {
			t.Errorf("the record is %+v, and the worker is told %d times", l, len(k.requested))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, k := keeperOf(t, answer(), nil, &Observer{})
		began := time.Now()
		if err := k.finish(t.Context(), (*Lease).disown); err != nil || time.Since(began) > 0 {
			t.Errorf("given up after %s, error %v", time.Since(began), err)
		}
	})
}

// A lease whose record is gone is lost at once: the handlers' context ends, and who waits
// for a write learns why. The fence has nothing to do with it.
func TestALeaseWithoutARecordIsLost(t *testing.T) {
	gone := &madeStore{replace: func(Record) (string, error) { return "", ErrNotFound }}
	synctest.Test(t, func(t *testing.T) {
		ctx, k, told := kept(t, gone)
		began := time.Now()
		err := k.renew(t.Context())
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrFenced) || !errors.Is(cause, err) {
			t.Errorf("error %v, the context ended with %v", err, cause)
		}
		if time.Since(began) > 0 || len(*told) != 0 {
			t.Errorf("it took %s; told %+v", time.Since(began), *told)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, k := keeperOf(t, gone, nil, &Observer{})
		began := time.Now()
		if err := k.finish(t.Context(), (*Lease).disown); !errors.Is(err, ErrLeaseLost) || time.Since(began) > 0 {
			t.Errorf("given up after %s, error %v", time.Since(began), err)
		}
	})
}

// A last write that fails is soon tried again: others wait for the lease.
func TestTheLastWriteIsSoonTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		_, k := keeperOf(t, &madeStore{replace: func(Record) (string, error) {
			if tries++; tries == 1 {
				return "", errTest
			}
			return "next", nil
		}}, nil, &Observer{})
		began := time.Now()
		if err := k.finish(t.Context(), (*Lease).disown); err != nil || time.Since(began) > 150*time.Millisecond {
			t.Errorf("given up after %s, error %v", time.Since(began), err)
		}
	})
}

// A last write that never succeeds is tried as long as the lease is trusted, also when the
// host stops.
func TestTheLastWriteEndsWithTheTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k := keeperOf(t, &madeStore{replace: func(Record) (string, error) { return "", errTest }}, nil, &Observer{})
		stopped, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		if err := k.finish(stopped, (*Lease).disown); !errors.Is(err, errTest) || time.Since(began) != 18*time.Second {
			t.Errorf("given up after %s, error %v; want Expiry - Margin = 18 s", time.Since(began), err)
		}
	})
}
