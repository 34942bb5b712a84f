package relay_test

import (
	"context"
	"errors"
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
						Host: host, Lanes: 4, DrainTimeout: -1, Observer: h.Observe(),
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
