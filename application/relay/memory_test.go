package relay_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// Remembered keys, parked or failing, must not alias the documents of a page.
func TestRememberedKeysDoNotAliasPage(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	r, err := relay.New(aliasingDecoder{}, b, withParked(mem, relay.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	handle := func(lines ...string) {
		var page []relay.Change
		for _, line := range lines {
			page = append(page, relay.Change{Raw: []byte(line), LSN: 7})
		}
		r.Handle(t.Context(), relay.Ownership{}, page)
		for i := range page {
			copy(page[i].Raw, "x 0")
		}
	}
	handle() // loads the gates
	b.fail = map[string]relay.KeyError{"a": {Sent: 1, Err: errBusy}}
	handle("a 1", "a 2")
	dead := deadLetter("a 2", 7, errTooLarge)
	if err := r.Park(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	copy(dead.Change.Raw, "x 0")
	b.fail = nil
	handle("a 3")
	if b.sent != 1 {
		t.Errorf("%d events sent, want only the first: the key is parked", b.sent)
	}
}

func TestNewOwnerLoadsGatesBeforeFirstPage(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	first := newRelay(t, b, withParked(mem, relay.Options{}))
	if err := first.Park(t.Context(), deadLetter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	second := newRelay(t, b, withParked(mem, relay.Options{}))
	if failed := second.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 2}, changes("a a2 2", "b b1 1")); failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff([]string{"a1 too_large", "a2 held"}, parkedIDs(t, mem, "a")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}

	// The first owner parks another key; then the second owns the range again. A store that failed
	// over may repeat the epoch, but not the history.
	for i, again := range []relay.Ownership{{Lease: "l", Epoch: 4}, {Lease: "l", Epoch: 4, History: "after a failover"}} {
		key := []string{"c", "d"}[i]
		if err := first.Park(t.Context(), deadLetter(key+" "+key+"1 1", 1, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		if failed := second.Handle(t.Context(), again, changes(key+" "+key+"2 2")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{key + "1 too_large", key + "2 held"}, parkedIDs(t, mem, key)); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
	}
}

// slowListing is a store whose listings end when listed returns, and lack keys that are parked meanwhile.
type slowListing struct {
	*parkedtest.Memory
	listed func(ctx context.Context) error
}

func (s *slowListing) Closed(ctx context.Context) ([]string, error) {
	keys, err := s.Memory.Closed(ctx)
	if err := s.listed(ctx); err != nil {
		return nil, err
	}
	return keys, err
}

// Two ranges wait for one listing. The context of the one that made it ends, and the other lists again.
func TestListingThatItsCallerCutsFailsNoOtherRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		begun, release, cuts := 0, make(chan struct{}), map[string]context.CancelFunc{}
		mem := &slowListing{Memory: parkedtest.NewMemory(), listed: func(ctx context.Context) error {
			switch begun++; begun {
			case 1:
				<-release
			case 2:
				time.Sleep(time.Second) // until the other range waits for it, too
				cuts[ctx.Value(name{}).(string)]()
				return ctx.Err()
			}
			return nil
		}}
		r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
		failed := map[string]int{}
		var mu sync.Mutex
		var running sync.WaitGroup
		for _, lease := range []string{"first", "a", "b"} {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, lease))
			cuts[lease] = cancel
			running.Go(func() {
				n := len(r.Handle(ctx, relay.Ownership{Lease: lease, Epoch: 1}, changes(lease+" "+lease+"1 1")))
				mu.Lock()
				defer mu.Unlock()
				failed[lease] = n
			})
			synctest.Wait()
		}
		close(release) // a and b began during the first listing, so one of them makes the second for both
		running.Wait()
		if failed["first"] != 0 || failed["a"]+failed["b"] != 1 {
			t.Errorf("failed events by range: %v; want that of the range whose context ended", failed)
		}
	})
}

// While another range lists the gates, a key is parked and its next event arrives. Another one arrives after the listing.
func TestKeyParkedDuringAListingIsHeldBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		close(release)
		b := &broker{}
		mem := &slowListing{Memory: parkedtest.NewMemory()}
		mem.listed = func(context.Context) error { <-release; return nil }
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		own := relay.Ownership{Lease: "l", Epoch: 1}
		if failed := r.Handle(t.Context(), own, changes("b b1 1")); failed != nil {
			t.Fatal(failed)
		}
		release = make(chan struct{})
		var other sync.WaitGroup
		other.Go(func() { r.Handle(t.Context(), relay.Ownership{Lease: "other", Epoch: 1}, changes("c c1 1")) })
		synctest.Wait()
		if err := r.Park(t.Context(), deadLetter("a a1 1", 1, errTooLarge)); err != nil {
			t.Fatal(err)
		}
		if failed := r.Handle(t.Context(), own, changes("a a2 2")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{"a1 too_large", "a2 held"}, parkedIDs(t, mem.Memory, "a")); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		close(release)
		other.Wait()
		if failed := r.Handle(t.Context(), own, changes("a a3 3")); failed != nil {
			t.Fatal(failed)
		}
		if diff := cmp.Diff([]string{"a1 too_large", "a2 held", "a3 held"}, parkedIDs(t, mem.Memory, "a")); diff != "" {
			t.Errorf("parked after the listing (-want +got):\n%s", diff)
		}
	})
}

func TestUnloadedGatesBlockSending(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withParked(mem, relay.Options{}))
	away := errors.New("store is away")
	mem.Fail(away)
	failed := r.Handle(t.Context(), relay.Ownership{}, changes("?", "a a1 1", "b b1 1?"))
	if len(failed) != 3 || b.sent != 0 {
		t.Fatalf("failed %v with %d sent, want all and nothing sent", failed, b.sent)
	}
	for _, f := range failed {
		if relay.ClassOf(f.Err) != relay.Outage || relay.ReasonOf(f.Err) != "gates_unknown" || !errors.Is(f.Err, away) {
			t.Errorf("failed %v, want an outage of the store", f)
		}
	}
	mem.Fail(nil)
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1")); failed != nil {
		t.Fatal(failed)
	}
}

func TestFailedGateLoadIsRetriedWithNextPage(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	before := newRelay(t, b, withParked(mem, relay.Options{}))
	if err := before.Park(t.Context(), deadLetter("a a1 1", 1, errTooLarge)); err != nil {
		t.Fatal(err)
	}
	r, own := newRelay(t, b, withParked(mem, relay.Options{})), relay.Ownership{Lease: "l", Epoch: 2}
	mem.Fail(errors.New("store is away"))
	if failed := r.Handle(t.Context(), own, changes("a a2 2")); len(failed) != 1 {
		t.Fatalf("failed %v, want a2 to wait for the store", failed)
	}
	mem.Fail(nil)
	if failed := r.Handle(t.Context(), own, changes("a a2 2")); failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff([]string{"a1 too_large", "a2 held"}, parkedIDs(t, mem, "a")); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
}

// The first event of a key that an owner sees is refused. Earlier ones were sent by another owner,
// and are not parked if the feed returns them again.
func TestEventsBeforeFirstSeenOneAreDone(t *testing.T) {
	b, mem := &broker{fail: failing(errTooLarge, "a")}, parkedtest.NewMemory()
	r := newRelay(t, b, withParked(mem, relay.Options{}))
	r.Handle(t.Context(), relay.Ownership{}, changes("a a5 5@4"))
	if err := r.Park(t.Context(), reportedLetter(t, relay.Ownership{}, changes("a a5 5@4")[0])); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{}, changes("a a4 4@3", "a a5 5@4", "a a6 6@5")); failed != nil {
		t.Fatal(failed)
	}
	if ids := parkedIDs(t, mem, "a"); !slices.Equal(ids, []string{"a5 too_large", "a6 held"}) {
		t.Errorf("parked %v", ids)
	}
}

// An event whose LSN is unknown gives a gate no progress.
func TestEventWithoutLSNGivesNoProgress(t *testing.T) {
	mem := parkedtest.NewMemory()
	r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
	if err := r.Park(t.Context(), reportedLetter(t, relay.Ownership{}, changes("a a1 5@0")[0])); err != nil {
		t.Fatal(err)
	}
	if g := gateOf(t, mem, "a"); g.Progress.LSN != 0 {
		t.Errorf("progress %+v, want none", g.Progress)
	}
}

// The place of a failed event outlives its page, so it must not alias the document.
func TestFailuresDoNotAliasPage(t *testing.T) {
	mem := parkedtest.NewMemory()
	r, err := relay.New(aliasingDecoder{}, &broker{fail: failing(errTooLarge, "a")}, withParked(mem, relay.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	page := []relay.Change{{Raw: []byte("a 1"), LSN: 7}}
	failed := r.Handle(t.Context(), relay.Ownership{}, page)
	copy(page[0].Raw, "x 0")
	if err := r.Park(t.Context(), relay.DeadLetter{Change: relay.Change{Raw: []byte("a 1"), LSN: 7}, Err: failed[0].Err}); err != nil {
		t.Fatal(err)
	}
	if g := gateOf(t, mem, "a"); g.Progress.Event != "a 1" {
		t.Errorf("progress %+v, want that of a 1", g.Progress)
	}
}

// Otherwise the set would grow with each key that was ever parked, and each of their pages would ask the store.
func TestListingForgetsKeysWithOpenGates(t *testing.T) {
	b, mem := &broker{}, &countingStore{Memory: parkedtest.NewMemory()}
	parkAll(t, newRelay(t, b, withParked(mem, relay.Options{})), "a", 1)
	r := newRelay(t, b, withParked(mem, relay.Options{}))
	r.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 1}, changes("a a2 2"))
	takeAll(t, mem.Memory, "a")
	if err := mem.Open(t.Context(), gateOf(t, mem.Memory, "a")); err != nil {
		t.Fatal(err)
	}
	before := mem.parks
	r.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 2}, changes("a a3 3"))
	if n := mem.parks - before; n != 0 || len(b.got["a"]) != 1 {
		t.Errorf("the store was asked %d times, sent %v; want no request and a3", n, b.got["a"])
	}
}
