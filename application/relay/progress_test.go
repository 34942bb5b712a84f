package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/relay/relayfeed"
)

// refusing is a broker that refuses one event. It accepts the events of the key before it.
type refusing struct {
	broker
	bad   atomic.Value // string: its id
	first func()       // called before the first send, if set
}

func (b *refusing) Publish(ctx context.Context, groups []relay.Group) error {
	if b.first != nil {
		b.first()
		b.first = nil
	}
	var failed relay.PublishError
	for i, g := range groups {
		n := len(g.Messages)
		for m := range g.Messages {
			if g.Messages[m].ID == b.bad.Load() {
				n = m
				failed.Keys = append(failed.Keys, relay.KeyError{Group: i, Sent: m, Err: errTooLarge})
				break
			}
		}
		_ = b.broker.Publish(ctx, []relay.Group{{Key: g.Key, Messages: g.Messages[:n]}})
	}
	if len(failed.Keys) > 0 {
		return &failed
	}
	return nil
}

// mortal is a lease store whose process may die: its writes then fail.
type mortal struct {
	changefeed.LeaseStore
	dead *atomic.Bool
}

func (s mortal) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	if s.dead.Load() {
		return "", errors.New("the process is dead")
	}
	return s.LeaseStore.Replace(ctx, r)
}

// A process writes nothing to its lease after it has begun to send, and stops after it has parked a5. Its successor
// reads the events before a5 again. They are not parked, so no later drain sends them again, with sequences or
// without.
func TestEventsBeforeGateAreNotSentAgainAfterCrash(t *testing.T) {
	for name, sequences := range map[string]string{"sequences": "12345 6", "no sequences": "00000 0"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				feed, store, mem := &logFeed{}, memstore.New(nil), parkedtest.NewMemory()
				for i := range 5 {
					n := string(rune('1' + i))
					feed.append("a a" + n + " " + sequences[i:i+1])
				}
				b := &refusing{}
				b.bad.Store("a5")
				start := func(host string, dead *atomic.Bool, after func()) (stop func()) {
					h := relayfeed.NewHandler(newRelay(t, b, withParked(mem, relay.Options{})))
					p, err := changefeed.New(feed, mortal{store, dead}, h, &changefeed.Options{
						Host: host, Lanes: 4, DrainTimeout: -1, Observer: &changefeed.Observer{},
						DeadLetter: func(ctx context.Context, l changefeed.DeadLetter) error {
							err := h.Park(ctx, l)
							after()
							return err
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan struct{})
					go func() { _ = p.Run(ctx); close(done) }()
					return func() { cancel(); <-done }
				}
				var dead, alive atomic.Bool
				parked := make(chan struct{})
				b.first = func() { dead.Store(true) }
				stop := start("first", &dead, func() { close(parked) })
				<-parked
				stop()
				stop = start("second", &alive, func() {})
				time.Sleep(5 * time.Minute)
				feed.append("a a6 " + sequences[6:])
				settle(time.Hour)
				want(t, "parked", parkedIDs(t, mem, "a"), "a5 too_large", "a6 held")
				b.bad.Store("")
				setIntent(t, mem, "a", relay.Intent{Verb: relay.VerbRetry, By: "ann"})
				run(t, newDrainer(t, mem, b, relay.DrainOptions{}, nil))
				settle(time.Minute)
				stop()
				if got := strings.Join(b.got["a"], " "); got != "a1 a2 a3 a4 a5 a6" {
					t.Errorf("sent %s", got)
				}
			})
		})
	}
}

// Some events of a transaction cannot be read, and have no place of their own. A retry passes them without the events
// that were sent. Each is parked, and a successor that reads the transaction again parks none of those that were sent.
func TestUnreadableEventsKeepTheirPlaceInRetries(t *testing.T) {
	for name, c := range map[string]struct {
		transaction, retried []string // as the feed returns them
		sent                 string
		parked               []string // the first one is the dead letter
	}{
		"at the end": {
			transaction: []string{"a a7 7@5", "a a8 8@5", "a a9 ?@5", "a a10 ?@5"}, retried: []string{"a a9 ?@5", "a a10 ?@5"},
			sent: "a7 a8", parked: []string{"a9 invalid_event", "a10 invalid_event"},
		},
		"not in the order of the feed": {
			transaction: []string{"a a5 5@5", "a a9 ?@5", "a a3 3@5", "a a10 ?@5"}, retried: []string{"a a5 5@5", "a a9 ?@5", "a a10 ?@5"},
			sent: "a3", parked: []string{"a10 invalid_event", "a5 held", "a9 invalid_event"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, mem, o := &broker{}, parkedtest.NewMemory(), relay.Ownership{Lease: "l", Epoch: 1, History: "h"}
			r := newRelay(t, b, withParked(mem, relay.Options{}))
			r.Handle(t.Context(), o, changes(c.transaction...))
			retried := changes(c.retried...)
			failed := r.Handle(t.Context(), o, retried)
			first := slices.IndexFunc(failed, func(f relay.Failure) bool { return !f.Held })
			if len(failed) != len(retried) || first < 0 {
				t.Fatalf("failures %v", failed)
			}
			bad := retried[failed[first].Index]
			if err := r.Park(t.Context(), relay.DeadLetter{Change: bad, Attempts: 5, Err: failed[first].Err}); err != nil {
				t.Fatal(err)
			}
			if failed := r.Handle(t.Context(), o, slices.Delete(retried, first, first+1)); failed != nil {
				t.Fatal(failed)
			}
			want(t, "parked", parkedIDs(t, mem, "a"), c.parked...)
			o.Epoch++
			for _, r := range []*relay.Relay{r, newRelay(t, b, withParked(mem, relay.Options{}))} {
				if failed := r.Handle(t.Context(), o, changes(c.transaction...)); failed != nil {
					t.Fatal(failed)
				}
			}
			want(t, "parked after all were read again", parkedIDs(t, mem, "a"), c.parked...)
			if got := strings.Join(b.got["a"], " "); got != c.sent {
				t.Errorf("sent %s, want %s", got, c.sent)
			}
		})
	}
}

// A key with transactions of events that can and cannot be read, in any order of the feed, and perhaps one that the
// broker refuses: whatever a retry passes, and however often the feed is read again, the events before the first bad one
// are sent, and it and all later ones are parked.
func TestEachEventIsSentOrParkedWhateverIsReadAgain(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var lines, order []string
		for lsn, n := 5, 0; lsn < 5+1+rng.IntN(3); lsn++ {
			transaction := make([]string, 1+rng.IntN(5))
			for i := range transaction {
				n++
				transaction[i] = fmt.Sprintf("a a%d %d@%d", n, n, lsn)
				if rng.IntN(3) == 0 {
					transaction[i] = fmt.Sprintf("a a%d ?@%d", n, lsn)
				}
			}
			rng.Shuffle(len(transaction), func(i, j int) { transaction[i], transaction[j] = transaction[j], transaction[i] })
			lines, order = append(lines, transaction...), append(order, placed(transaction)...)
		}
		all := changes(lines...)
		b, mem := &refusing{}, parkedtest.NewMemory()
		refused := order[rng.IntN(len(order))]
		if rng.IntN(2) == 0 {
			refused = ""
		}
		b.bad.Store(refused)
		good := slices.IndexFunc(order, func(id string) bool {
			return id == refused || slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "a "+id+" ?") })
		})
		if good < 0 {
			good = len(order)
		}
		relays := func() *relay.Relay { return newRelay(t, b, withParked(mem, relay.Options{})) }
		r, o, left := relays(), relay.Ownership{Lease: "l", Epoch: 1, History: "h"}, slices.Clone(all)
		for step := 0; len(left) > 0; step++ {
			if step > 100 {
				t.Fatalf("seed %d: %v are not done", seed, left)
			}
			if step < 20 && rng.IntN(2) == 0 { // the feed is read again from the checkpoint
				if left = slices.Clone(all); rng.IntN(2) == 0 { // by the next owner
					r = relays()
					o.Epoch++
				}
			}
			n := 1 + rng.IntN(len(left))
			for n < len(left) && left[n].LSN == left[n-1].LSN { // a transaction is delivered whole
				n++
			}
			var failed []relay.Change
			var first *relay.Failure
			for _, f := range r.Handle(t.Context(), o, left[:n]) {
				if failed = append(failed, left[f.Index]); first == nil && !f.Held {
					first = &f
				}
			}
			rest := left[n:]
			if first != nil && rng.IntN(2) == 0 {
				bad := left[first.Index]
				if err := r.Park(t.Context(), relay.DeadLetter{Change: bad, Attempts: 5, Err: first.Err}); err != nil {
					t.Fatal(err)
				}
				failed = slices.DeleteFunc(failed, func(c relay.Change) bool { return bytes.Equal(c.Raw, bad.Raw) })
			}
			left = slices.Concat(failed, rest)
		}
		sent, parked := unique(b.got["a"]), parkedIDs(t, mem, "a")
		for i := range parked {
			parked[i], _, _ = strings.Cut(parked[i], " ")
		}
		slices.Sort(parked) // their order is that of Gate.Admit
		if !slices.Equal(sent, order[:good]) || !slices.Equal(parked, slices.Sorted(slices.Values(order[good:]))) {
			t.Errorf("seed %d: %v, refused %q\nsent %v\nparked %v\nwant %d of %v sent", seed, lines, refused, sent, parked, good, order)
		}
	}
}

// placed returns the ids of the events of a transaction in the order in which they are sent. One that cannot be read
// follows the event before it.
func placed(transaction []string) (ids []string) {
	place := map[string][]string{}
	before := []string{"00"}
	for _, line := range transaction {
		parts := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '@' })
		id := parts[1]
		if parts[2] == "?" {
			before = append(slices.Clone(before), id)
		} else {
			before = []string{fmt.Sprintf("%02s", parts[2])}
		}
		place[id], ids = before, append(ids, id)
	}
	slices.SortStableFunc(ids, func(a, b string) int { return slices.Compare(place[a], place[b]) })
	return ids
}

func unique(ids []string) (first []string) {
	for _, id := range ids {
		if !slices.Contains(first, id) {
			first = append(first, id)
		}
	}
	return first
}

// The container was restored, or its feed restarted: the LSNs of the gate's history are used again
// for new events. They are parked.
func TestGateAdmitsEventsOfAnotherHistory(t *testing.T) {
	b, mem := &broker{}, parkedtest.NewMemory()
	r := newRelay(t, b, withParked(mem, relay.Options{}))
	l := reportedLetter(t, relay.Ownership{History: "before"}, changes("a a6 6@101")[0])
	if err := r.Park(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if failed := r.Handle(t.Context(), relay.Ownership{History: "before"}, changes("a a4 4@99")); failed != nil {
		t.Fatal(failed)
	}
	want(t, "parked", parkedIDs(t, mem, "a"), "a6 too_large")
	if failed := r.Handle(t.Context(), relay.Ownership{Lease: "l", Epoch: 1, History: "after"}, changes("a new 4@80", "a newer 5@81")); failed != nil {
		t.Fatal(failed)
	}
	want(t, "parked", parkedIDs(t, mem, "a"), "new held", "newer held", "a6 too_large")
	if b.sent != 0 {
		t.Errorf("sent %v although the key is parked", b.got)
	}
}

// After a failover that lost the last events of a partition, the LSNs are used again within one
// history. Events that were committed later than the gate's last event are new.
func TestGateAdmitsEventsCommittedLater(t *testing.T) {
	mem, at := parkedtest.NewMemory(), time.Unix(1000, 0)
	r := newRelay(t, &broker{}, withParked(mem, relay.Options{}))
	c := changes("a a6 6@101")[0]
	c.Timestamp = at
	l := reportedLetter(t, relay.Ownership{}, c)
	if err := r.Park(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	page := changes("a a5 5@100", "a other 5@98")
	page[0].Timestamp, page[1].Timestamp = at, at.Add(time.Minute)
	if failed := r.Handle(t.Context(), relay.Ownership{}, page); failed != nil {
		t.Fatal(failed)
	}
	want(t, "parked", parkedIDs(t, mem, "a"), "other held", "a6 too_large")
}
