package changefeed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// funcStore is a lease store of one record whose replies come from functions.
type funcStore struct {
	LeaseStore
	replace func(Record) (string, error)
	read    func() (Record, error)
}

func (s *funcStore) Replace(_ context.Context, r Record) (string, error) { return s.replace(r) }

func (s *funcStore) Read(context.Context, string) (Record, error) { return s.read() }

// ownedLease returns the record of a lease owned by host a.
func ownedLease() Lease {
	return Lease{
		ID: "p..-FF", ETag: "taken", Version: 1, Token: "-FF", Range: FullRange(), Mode: modeIncremental,
		Owner: "a", Incarnation: "1", Epoch: 2, Expiry: 20 * time.Second,
	}
}

// keeperOf returns the keeper of a lease acquired just now. A nil clock is the system's.
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
	return ctx, newKeeper(&env{store: store, opts: opts, clock: opts.Clock, obs: obs}, ownedLease(), f, w.read().monotonic, newSignal())
}

// A change that can wait wakes no one.
func TestChangeIsDueByItsUrgency(t *testing.T) {
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

func TestStoredChangeIsNotDue(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	store := &funcStore{replace: func(Record) (string, error) { return "next", nil }}
	_, k := keeperOf(t, store, c, &Observer{})
	for name, change := range map[string]func(){
		"many items": func() { k.items += checkpointItems; k.advance(`"1"`, 1, 1, 1) },
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

func TestItemsHandledDuringWriteCountForNextWrite(t *testing.T) {
	store := &funcStore{}
	_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
	store.replace = func(Record) (string, error) {
		k.items += checkpointItems - 1
		k.advance(`"2"`, 1, 2, 2)
		return "next", nil
	}
	k.items += 100
	k.advance(`"1"`, 1, 1, 1)
	if err := k.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := k.due(); d == 0 {
		t.Errorf("due at once with %d items", k.items)
	}
	k.items++
	if k.advance(`"3"`, 1, 3, 3); k.due() != 0 {
		t.Errorf("%d items were handled since the last write, and the next one is due in %s", checkpointItems, k.due())
	}
}

// The record has the time of the write. The report covers the whole write.
func TestWriteIsReported(t *testing.T) {
	c := &manualClock{now: time.Unix(100, 0)}
	store := &funcStore{replace: func(r Record) (string, error) {
		if l, err := decodeLease(r); err != nil || !l.Timestamp.Equal(c.now) {
			t.Errorf("stored %+v, error %v; want the time of the write, %s", l, err, c.now)
		}
		c.now = c.now.Add(3 * time.Second)
		return "next", nil
	}}
	var reported []CheckpointWritten
	_, k := keeperOf(t, store, c, &Observer{CheckpointWritten: func(e CheckpointWritten) { reported = append(reported, e) }})
	k.advance(`"7"`, 1, 7, 70)
	c.now = c.now.Add(time.Second)
	if err := k.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := CheckpointWritten{LeaseRef{Lease: "p..-FF", Range: FullRange(), Epoch: 2}, `"7"`, 7, 3 * time.Second}
	if len(reported) != 1 || reported[0] != want {
		t.Errorf("reported %+v, want %+v", reported, want)
	}
}

// doneUntil is a session with one held key that has done all other changes until an LSN.
type doneUntil int64

func (d doneUntil) ahead(int64) Ahead { return Ahead{LSN: int64(d), Held: []HeldKey{{Key: 1, LSN: 2}}} }

// A write stores what is done ahead of the checkpoint by then, not by the write before.
func TestWriteStoresWhatIsDoneAhead(t *testing.T) {
	store := &funcStore{}
	_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
	for lsn := int64(8); lsn < 10; lsn++ {
		store.replace = func(r Record) (string, error) {
			if l, err := decodeLease(r); err != nil || l.Ahead.LSN != lsn || len(l.Ahead.Held) != 1 {
				t.Errorf("stored %+v, error %v; want what is done until %d", l.Ahead, err, lsn)
			}
			return "next", nil
		}
		k.session = doneUntil(lsn)
		if err := k.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// runKeeper runs a keeper in the background, in a bubble, and returns its reported errors.
func runKeeper(t *testing.T, store LeaseStore) (ctx context.Context, k *keeper, reported *[]LeaseError) {
	t.Helper()
	reported = &[]LeaseError{}
	ctx, k = keeperOf(t, store, nil, &Observer{LeaseError: func(e LeaseError) { *reported = append(*reported, e) }})
	keep, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go k.run(keep)
	synctest.Wait()
	return ctx, k, reported
}

func TestFlushIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, reported := runKeeper(t, &funcStore{replace: func(Record) (string, error) { return "next", nil }})
		for range 3 {
			began := time.Now()
			k.change(func(*Lease) urgency { return later })
			synctest.Wait()
			if err := k.flush(t.Context()); err != nil || time.Since(began) > 0 {
				t.Errorf("stored after %s, error %v", time.Since(began), err)
			}
		}
		synctest.Wait()
		if len(*reported) != 0 {
			t.Errorf("reported %+v", *reported)
		}
	})
}

func TestFailedRenewalsAreRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		_, _, reported := runKeeper(t, &funcStore{replace: func(Record) (string, error) {
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
		if len(*reported) != 5 {
			t.Errorf("reported %+v, want the five that failed", *reported)
		}
		for _, e := range *reported {
			if e.Lease != "p..-FF" || e.Op != "renew" || !errors.Is(e.Err, errTest) {
				t.Errorf("reported %+v", e)
			}
		}
	})
}

// The operator's write causes neither a delay nor an error, and the keeper writes again.
func TestOperatorsWriteIsAdopted(t *testing.T) {
	theirs := ownedLease()
	theirs.ETag, theirs.Request.Paused = "theirs", true
	answer := func() *funcStore {
		return &funcStore{
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
		_, k, reported := runKeeper(t, answer())
		for range 3 { // each write follows a successful one, so no two conflicts are in a row
			began := time.Now()
			err := k.renew(t.Context())
			synctest.Wait()
			if err != nil || time.Since(began) > 0 || len(*reported) != 0 {
				t.Errorf("renewed after %s, error %v; reported %+v", time.Since(began), err, *reported)
			}
		}
		if l := k.snapshot(); l.ETag != "next" || !l.Request.Paused || len(k.requested) != 1 {
			t.Errorf("the record is %+v, and the worker is notified %d times", l, len(k.requested))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, k := keeperOf(t, answer(), nil, &Observer{})
		began := time.Now()
		if err := k.finish(t.Context(), (*Lease).disown); err != nil || time.Since(began) > 0 {
			t.Errorf("ended after %s, error %v", time.Since(began), err)
		}
	})
}

// A rewind that was carried out must not be carried out again because a delayed replica still has the request, after
// the write of another operator or a lost reply.
func TestRequestOfADelayedReplicaIsNotAdopted(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := &mapStore{records: map[string]Record{}}
		stored := s.keep(t, ownedLease())
		request := func(edit func(*Request)) {
			r, err := s.Read(t.Context(), stored.ID)
			l, failed := decodeLease(r)
			edit(&l.Request)
			_, refused := s.Replace(t.Context(), l.encode())
			if err := errors.Join(err, failed, refused); err != nil {
				t.Fatal(err)
			}
		}
		store := &funcStore{}
		fresh := func() (Record, error) { return s.Read(t.Context(), stored.ID) }
		store.read, store.replace = fresh, func(r Record) (string, error) { return s.Replace(t.Context(), r) }
		_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
		k.lease.ETag = stored.ETag
		request(func(r *Request) { r.Rewind = &RangeToken{Range: FullRange()} })
		refused, err := k.write(t.Context()), k.write(t.Context())
		if !errors.Is(refused, errRewritten) || err != nil || k.snapshot().Request.Rewind == nil || len(k.requested) != 1 {
			t.Fatalf("errors %v, %v; the request is %+v", refused, err, k.snapshot().Request)
		}
		old, _ := fresh()
		k.change(applyRequest)
		s.lose = lost
		if err := k.write(t.Context()); (err != nil) != lost {
			t.Fatalf("lost %t: %v", lost, err)
		}
		store.read = func() (Record, error) { return old, nil }
		request(func(r *Request) { r.Retry = true })
		for range 3 {
			if err := k.write(t.Context()); err == nil || k.snapshot().Request.Rewind != nil {
				t.Fatalf("lost %t: error %v, the request is %+v", lost, err, k.snapshot().Request)
			}
		}
		store.read = fresh
		refused, err = k.write(t.Context()), k.write(t.Context())
		if refused == nil || err != nil || !k.snapshot().Request.equal(Request{Retry: true}) {
			t.Errorf("lost %t: errors %v, %v; the request is %+v", lost, refused, err, k.snapshot().Request)
		}
	}
}

// The handlers' context ends, and a caller that waits for a write gets the cause.
func TestLeaseWithDeletedRecordIsLost(t *testing.T) {
	gone := &funcStore{replace: func(Record) (string, error) { return "", ErrNotFound }}
	synctest.Test(t, func(t *testing.T) {
		ctx, k, reported := runKeeper(t, gone)
		began := time.Now()
		err := k.renew(t.Context())
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrFenced) || !errors.Is(cause, err) {
			t.Errorf("error %v, the context ended with %v", err, cause)
		}
		if time.Since(began) > 0 || len(*reported) != 0 {
			t.Errorf("it took %s; reported %+v", time.Since(began), *reported)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, k := keeperOf(t, gone, nil, &Observer{})
		began := time.Now()
		if err := k.finish(t.Context(), (*Lease).disown); !errors.Is(err, ErrLeaseLost) || time.Since(began) > 0 {
			t.Errorf("ended after %s, error %v", time.Since(began), err)
		}
	})
}

// The last write is retried soon because other hosts wait for the lease.
func TestLastWriteIsRetriedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		_, k := keeperOf(t, &funcStore{replace: func(Record) (string, error) {
			if tries++; tries == 1 {
				return "", errTest
			}
			return "next", nil
		}}, nil, &Observer{})
		began := time.Now()
		if err := k.finish(t.Context(), (*Lease).disown); err != nil || time.Since(began) > 150*time.Millisecond {
			t.Errorf("ended after %s, error %v", time.Since(began), err)
		}
	})
}

// The retries continue when the host stops.
func TestLastWriteIsRetriedUntilTheFencePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k := keeperOf(t, &funcStore{replace: func(Record) (string, error) { return "", errTest }}, nil, &Observer{})
		stopped, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		if err := k.finish(stopped, (*Lease).disown); !errors.Is(err, errTest) || time.Since(began) != 18*time.Second {
			t.Errorf("ended after %s, error %v; want Expiry - Margin = 18 s", time.Since(began), err)
		}
	})
}
