package parked_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
)

// account is one under session consistency.
type account struct {
	t        *testing.T
	emulator *cosmosemu.Server
}

// newStale returns an account whose replicas may be two seconds behind.
func newStale(t *testing.T) *account { return newAccount(t, 2*time.Second) }

// newAccount returns one whose replicas are behind by up to lag.
func newAccount(t *testing.T, lag time.Duration) *account {
	t.Helper()
	s := &account{t: t, emulator: cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 3, StaleReads: lag})}
	must(t, s.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{cosmos.PartitionKeyPath}}))
	return s
}

// process is one relay's view. crash, if not nil, reports whether a request fails instead.
type process struct {
	next  *http.Client
	crash func(r *http.Request) bool
}

var errCrashed = errors.New("the process has stopped")

// Do implements policy.Transporter. A session token tells of one range only: a query of
// all ranges goes without.
func (p *process) Do(r *http.Request) (*http.Response, error) {
	if p.crash != nil && p.crash(r) {
		return nil, errCrashed
	}
	if isQuery(r) && r.Header.Get("x-ms-documentdb-partitionkey") == "" {
		r.Header.Del("x-ms-session-token")
	}
	return p.next.Do(r)
}

func isQuery(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("x-ms-documentdb-isquery"), "true") || strings.EqualFold(r.Header.Get("x-ms-documentdb-query"), "true")
}

func isBatch(r *http.Request) bool { return r.Header.Get("x-ms-cosmos-is-batch-request") != "" }

// lot is the lot of a process that has just started: it has seen nothing.
func (s *account) lot(crash func(r *http.Request) bool) *parked.Lot {
	s.t.Helper()
	client, err := cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: s.emulator.Endpoint(), Key: s.emulator.Key(),
		Options: azcore.ClientOptions{Transport: &process{next: s.emulator.HTTPClient(), crash: crash}},
	})
	must(s.t, err)
	s.t.Cleanup(client.Close)
	container, err := client.NewContainer("contacts", "parked")
	must(s.t, err)
	lot, err := parked.New(container)
	must(s.t, err)
	return lot
}

func (s *account) close(lot *parked.Lot, key string) error {
	e := parkedEvent("e1", []byte(`{}`))
	_, err := lot.Park(s.t.Context(), key, []relay.ParkedEvent{e}, &relay.Closing{Event: "e1", At: e.ParkedAt})
	return err
}

func (s *account) closed(lot *parked.Lot) []string {
	s.t.Helper()
	keys, err := lot.Closed(s.t.Context())
	must(s.t, err)
	slices.Sort(keys)
	return keys
}

// tries is how often a chance is taken that comes up every second time.
const tries = 20

func TestANewOwnerKnowsWhatWasParkedAMomentAgo(t *testing.T) {
	s := newStale(t)
	var want []string
	for i := range tries {
		key := "key-" + string(rune('a'+i))
		want = append(want, key)
		must(t, s.close(s.lot(nil), key))
		if got := s.closed(s.lot(nil)); !slices.Equal(got, want) {
			t.Errorf("try %d: closed keys %v, want %v", i, got, want)
		}
	}
}

func TestANewOwnerKnowsWhatWasParkedBeforeASplit(t *testing.T) {
	s := newStale(t)
	keys := []string{"a", "b", "c", "d", "e"}
	for _, key := range keys {
		must(t, s.close(s.lot(nil), key))
	}
	for _, id := range []string{"0", "1", "2"} {
		must(t, s.emulator.Split("contacts", "parked", id))
		for range tries / 4 {
			if got := s.closed(s.lot(nil)); !slices.Equal(got, keys) {
				t.Errorf("after the split of %s: closed keys %v, want %v", id, got, keys)
			}
		}
	}
	must(t, s.close(s.lot(nil), "f"))
	if got, want := s.closed(s.lot(nil)), []string{"a", "b", "c", "d", "e", "f"}; !slices.Equal(got, want) {
		t.Errorf("closed keys %v, want %v", got, want)
	}
}

func TestAnOldStateOfAGateDoesNotOpenIt(t *testing.T) {
	s := newStale(t)
	for i := range tries {
		key := "key-" + string(rune('a'+i))
		must(t, s.close(s.lot(nil), key))
		follower := parkedEvent("e2", []byte(`{}`))
		if _, err := s.lot(nil).Park(t.Context(), key, []relay.ParkedEvent{follower}, nil); err != nil {
			t.Fatalf("try %d: park behind a closed gate: %v", i, err)
		}
		if g, err := s.lot(nil).Gate(t.Context(), key); err != nil || g.Key != key {
			t.Fatalf("try %d: gate %+v, %v; want it closed", i, g, err)
		}
	}
	if _, err := s.lot(nil).Park(t.Context(), "other", []relay.ParkedEvent{parkedEvent("e1", []byte(`{}`))}, nil); !errors.Is(err, relay.ErrGateOpen) {
		t.Errorf("park behind an open gate: %v", err)
	}
}

// An owner that stops between the entry and the gate leaves a key listed that is open;
// one that stops behind the gate leaves both.
func TestStoppingWhileParkingHidesNoGate(t *testing.T) {
	s := newStale(t)
	writes := 0
	entry := s.lot(func(r *http.Request) bool {
		if isBatch(r) {
			writes++
		}
		return writes > 1 // the first one asks whether the gate is absent
	})
	if err := s.close(entry, "entry"); err == nil {
		t.Fatal("parked without a gate")
	}
	must(t, s.close(s.lot(nil), "gate"))
	owner := s.lot(nil)
	if got := s.closed(owner); !slices.Equal(got, []string{"entry", "gate"}) {
		t.Fatalf("closed keys %v", got)
	}
	young, old := parkedEvent("e1", []byte(`{}`)), parkedEvent("e1", []byte(`{}`))
	old.ParkedAt = old.ParkedAt.Add(2 * time.Hour)
	for _, step := range []struct {
		event relay.ParkedEvent
		left  []string
	}{{young, []string{"entry", "gate"}}, {old, []string{"gate"}}} {
		if _, err := owner.Park(t.Context(), "entry", []relay.ParkedEvent{step.event}, nil); !errors.Is(err, relay.ErrGateOpen) {
			t.Fatalf("park without a gate: %v, want it open", err)
		}
		if got := s.closed(s.lot(nil)); !slices.Equal(got, step.left) {
			t.Errorf("closed keys %v, want %v", got, step.left)
		}
	}
}

func TestStoppingBehindTheGateLeavesAnEntry(t *testing.T) {
	for i := range tries {
		s := newStale(t)
		gates := 0
		lot := s.lot(func(r *http.Request) bool { // nothing gets out behind the second batch, which stores the gate
			if isBatch(r) {
				gates++
				return gates > 2
			}
			return gates == 2
		})
		_ = s.close(lot, "k") // it may have said what it had to say
		if got := s.closed(s.lot(nil)); !slices.Equal(got, []string{"k"}) {
			t.Fatalf("try %d: closed keys %v, want k", i, got)
		}
	}
}

// open drains the gate of key as the drainer does.
func (s *account) open(lot *parked.Lot, key string) error {
	s.t.Helper()
	g, err := lot.Gate(s.t.Context(), key)
	must(s.t, err)
	g, err = lot.Remove(s.t.Context(), g, []relay.ParkedEvent{{ID: "e1"}}, nil)
	must(s.t, err)
	return lot.Open(s.t.Context(), g)
}

func TestAnOpenedGateIsNotListed(t *testing.T) {
	s := newAccount(t, 0)
	must(t, s.close(s.lot(nil), "k"))
	must(t, s.open(s.lot(nil), "k"))
	if got := s.closed(s.lot(nil)); len(got) > 0 {
		t.Errorf("closed keys %v, want none", got)
	}
}

// TestClosingAgainOutlivesTheEarlierOpening closes a gate again after it was opened and
// before its entry is taken away.
func TestClosingAgainOutlivesTheEarlierOpening(t *testing.T) {
	s := newStale(t)
	must(t, s.close(s.lot(nil), "k"))
	deletes := 0
	drainer := s.lot(func(r *http.Request) bool {
		if r.Method == http.MethodDelete {
			if deletes++; deletes == 2 { // the gate is gone, its entry is next
				must(t, s.close(s.lot(nil), "k"))
			}
		}
		return false
	})
	must(t, s.open(drainer, "k"))
	if deletes != 2 {
		t.Fatalf("%d deletes, want that of the gate and that of the entry", deletes)
	}
	for range tries {
		if got := s.closed(s.lot(nil)); !slices.Equal(got, []string{"k"}) {
			t.Fatalf("closed keys %v, want k", got)
		}
	}
}

// A gate is not closed before its key is listed: a new owner would not find it.
func TestAGateThatCannotBeListedIsNotClosed(t *testing.T) {
	s := newAccount(t, 0)
	lot := s.lot(func(r *http.Request) bool {
		return strings.EqualFold(r.Header.Get("x-ms-documentdb-is-upsert"), "true")
	})
	if err := s.close(lot, "k"); err == nil {
		t.Error("parked, and the key is not listed")
	}
	if g, err := s.lot(nil).Gate(t.Context(), "k"); err == nil {
		t.Errorf("the gate is closed: %+v", g)
	}
}

// A gate that is opened while events are parked behind it is closed anew for them.
func TestAGateOpenedWhileParkingIsClosedAnew(t *testing.T) {
	s := newAccount(t, 0)
	must(t, s.close(s.lot(nil), "k"))
	opened := false
	lot := s.lot(func(r *http.Request) bool {
		if isBatch(r) && !opened { // the gate was read, the transaction is next
			opened = true
			must(t, s.open(s.lot(nil), "k"))
		}
		return false
	})
	e := parkedEvent("e2", []byte(`{}`))
	if _, err := lot.Park(t.Context(), "k", []relay.ParkedEvent{e}, &relay.Closing{Event: "e2", At: e.ParkedAt}); err != nil {
		t.Fatal(err)
	}
	if g, err := s.lot(nil).Gate(t.Context(), "k"); err != nil || !opened || g.Events != 1 || g.Closing.Event != "e2" {
		t.Errorf("gate %+v, error %v; want one closed for e2", g, err)
	}
}

// TestALotReadsWhatItWrote although replicas are behind: each answer to a write says what the
// next read must know.
func TestALotReadsWhatItWrote(t *testing.T) {
	s := newStale(t)
	lot := s.lot(nil)
	events := []relay.ParkedEvent{parkedEvent("e1", []byte(`{}`)), parkedEvent("e2", []byte(`{}`))}
	parkAt(t, lot, "k", &relay.Closing{Event: "e1"}, events...)
	g, err := lot.SetIntent(t.Context(), "k", relay.Intent{Verb: relay.VerbRetry})
	must(t, err)
	if g, err := lot.Gate(t.Context(), "k"); err != nil || g.Intent == nil {
		t.Errorf("gate %+v, %v; want what was set", g, err)
	}
	g, err = lot.Remove(t.Context(), g, events[:1], &relay.Skipped{Event: events[0], Intent: *g.Intent})
	must(t, err)
	if first, err := lot.First(t.Context(), "k", 5); err != nil || len(first) != 1 {
		t.Errorf("%d events, %v; want one left", len(first), err)
	}
	if skipped, err := lot.Skipped(t.Context(), "k"); err != nil || len(skipped) != 1 || skipped[0].Event.ID != "e1" || skipped[0].Intent.Verb != relay.VerbRetry {
		t.Errorf("skipped %+v, %v; want e1", skipped, err)
	}
	must(t, lot.Open(t.Context(), g))
	if first, err := lot.First(t.Context(), "k", 5); err != nil || len(first) != 1 {
		t.Errorf("%d events, %v; want the one that stays", len(first), err)
	}
}
