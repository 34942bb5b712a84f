package parked_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
)

func TestNewOwnerSeesRecentlyParkedKeys(t *testing.T) {
	s := newStale(t)
	var want []string
	for i := range tries {
		key := "key-" + string(rune('a'+i))
		want = append(want, key)
		must(t, s.close(s.store(nil), key))
		if got := s.closed(s.store(nil)); !slices.Equal(got, want) {
			t.Errorf("try %d: closed keys %v, want %v", i, got, want)
		}
	}
}

func TestNewOwnerSeesKeysParkedBeforeASplit(t *testing.T) {
	s := newStale(t)
	keys := []string{"a", "b", "c", "d", "e"}
	for _, key := range keys {
		must(t, s.close(s.store(nil), key))
	}
	for _, id := range []string{"0", "1", "2"} {
		must(t, s.emulator.Split("contacts", "parked", id))
		for range tries / 4 {
			if got := s.closed(s.store(nil)); !slices.Equal(got, keys) {
				t.Errorf("after the split of %s: closed keys %v, want %v", id, got, keys)
			}
		}
	}
	must(t, s.close(s.store(nil), "f"))
	if got, want := s.closed(s.store(nil)), []string{"a", "b", "c", "d", "e", "f"}; !slices.Equal(got, want) {
		t.Errorf("closed keys %v, want %v", got, want)
	}
}

func TestStaleReplicaDoesNotOpenAGate(t *testing.T) {
	s := newStale(t)
	for i := range tries {
		key := "key-" + string(rune('a'+i))
		must(t, s.close(s.store(nil), key))
		follower := parkedEvent("e2", []byte(`{}`))
		if _, err := s.store(nil).Park(t.Context(), key, []relay.ParkedEvent{follower}, nil); err != nil {
			t.Fatalf("try %d: park at a closed gate: %v", i, err)
		}
		if g, err := s.store(nil).Gate(t.Context(), key); err != nil || g.Key != key {
			t.Fatalf("try %d: gate %+v, %v; want it closed", i, g, err)
		}
	}
	if _, err := s.store(nil).Park(t.Context(), "other", []relay.ParkedEvent{parkedEvent("e1", []byte(`{}`))}, nil); !errors.Is(err, relay.ErrGateOpen) {
		t.Errorf("park at an open gate: %v", err)
	}
}

// An owner that stops between the entry and the gate leaves an open key in the list; one that stops
// after the gate leaves both.
func TestCrashWhileParkingHidesNoGate(t *testing.T) {
	s := newStale(t)
	writes := 0
	entry := s.store(func(r *http.Request) bool {
		if isBatch(r) {
			writes++
		}
		return writes > 1 // the first one asks whether the gate is absent
	})
	if err := s.close(entry, "entry"); err == nil {
		t.Fatal("parked without a gate")
	}
	must(t, s.close(s.store(nil), "gate"))
	owner := s.store(nil)
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
		if got := s.closed(s.store(nil)); !slices.Equal(got, step.left) {
			t.Errorf("closed keys %v, want %v", got, step.left)
		}
	}
}

func TestCrashAfterTheGateLeavesAnEntry(t *testing.T) {
	for i := range tries {
		s := newStale(t)
		gates := 0
		store := s.store(func(r *http.Request) bool { // no request is sent after the second batch, which stores the gate
			if isBatch(r) {
				gates++
				return gates > 2
			}
			return gates == 2
		})
		_ = s.close(store, "k") // it may have said what it had to say
		if got := s.closed(s.store(nil)); !slices.Equal(got, []string{"k"}) {
			t.Fatalf("try %d: closed keys %v, want k", i, got)
		}
	}
}

func TestOpenedGateIsNotListed(t *testing.T) {
	s := newAccount(t, 0)
	must(t, s.close(s.store(nil), "k"))
	must(t, s.open(s.store(nil), "k"))
	if got := s.closed(s.store(nil)); len(got) > 0 {
		t.Errorf("closed keys %v, want none", got)
	}
}

// TestOpeningKeepsTheEntryOfALaterClosing closes a gate again after it was opened and
// before its entry is deleted.
func TestOpeningKeepsTheEntryOfALaterClosing(t *testing.T) {
	s := newStale(t)
	must(t, s.close(s.store(nil), "k"))
	deletes := 0
	drainer := s.store(func(r *http.Request) bool {
		if r.Method == http.MethodDelete {
			if deletes++; deletes == 2 { // the gate is gone, its entry is next
				must(t, s.close(s.store(nil), "k"))
			}
		}
		return false
	})
	must(t, s.open(drainer, "k"))
	if deletes != 2 {
		t.Fatalf("%d deletes, want that of the gate and that of the entry", deletes)
	}
	for range tries {
		if got := s.closed(s.store(nil)); !slices.Equal(got, []string{"k"}) {
			t.Fatalf("closed keys %v, want k", got)
		}
	}
}

// A gate is not closed before its key is listed: a new owner would not find it.
func TestGateIsNotClosedIfListingFails(t *testing.T) {
	s := newAccount(t, 0)
	store := s.store(func(r *http.Request) bool {
		return strings.EqualFold(r.Header.Get("x-ms-documentdb-is-upsert"), "true")
	})
	if err := s.close(store, "k"); err == nil {
		t.Error("parked, and the key is not listed")
	}
	if g, err := s.store(nil).Gate(t.Context(), "k"); err == nil {
		t.Errorf("the gate is closed: %+v", g)
	}
}

// A gate that is opened while events are being parked is closed again for them.
func TestGateOpenedWhileParkingIsClosedAgain(t *testing.T) {
	s := newAccount(t, 0)
	must(t, s.close(s.store(nil), "k"))
	opened := false
	store := s.store(func(r *http.Request) bool {
		if isBatch(r) && !opened { // the gate was read, the transaction is next
			opened = true
			must(t, s.open(s.store(nil), "k"))
		}
		return false
	})
	e := parkedEvent("e2", []byte(`{}`))
	if _, err := store.Park(t.Context(), "k", []relay.ParkedEvent{e}, &relay.Closing{Event: "e2", At: e.ParkedAt}); err != nil {
		t.Fatal(err)
	}
	if g, err := s.store(nil).Gate(t.Context(), "k"); err != nil || !opened || g.Events != 1 || g.Closing.Event != "e2" {
		t.Errorf("gate %+v, error %v; want one closed for e2", g, err)
	}
}

// A store reads its own writes although replicas lag, because each write returns the session token
// for the next read.
func TestStoreReadsItsOwnWrites(t *testing.T) {
	s := newStale(t)
	store := s.store(nil)
	events := []relay.ParkedEvent{parkedEvent("e1", []byte(`{}`)), parkedEvent("e2", []byte(`{}`))}
	parkAt(t, store, "k", &relay.Closing{Event: "e1"}, events...)
	g, err := store.SetIntent(t.Context(), "k", relay.Intent{Verb: relay.VerbRetry})
	must(t, err)
	if g, err := store.Gate(t.Context(), "k"); err != nil || g.Intent == nil {
		t.Errorf("gate %+v, %v; want what was set", g, err)
	}
	g, err = store.Remove(t.Context(), g, events[:1], &relay.Skipped{Event: events[0], Intent: *g.Intent})
	must(t, err)
	if first, err := store.First(t.Context(), "k", 5, 1<<30); err != nil || len(first) != 1 {
		t.Errorf("%d events, %v; want one left", len(first), err)
	}
	if skipped, err := store.Skipped(t.Context(), "k"); err != nil || len(skipped) != 1 || skipped[0].Event.ID != "e1" || skipped[0].Intent.Verb != relay.VerbRetry {
		t.Errorf("skipped %+v, %v; want e1", skipped, err)
	}
	must(t, store.Open(t.Context(), g))
	if first, err := store.First(t.Context(), "k", 5, 1<<30); err != nil || len(first) != 1 {
		t.Errorf("%d events, %v; want the one that stays", len(first), err)
	}
}

// unreached replies to reads of the keys k and j with a session token as replicas that have not reached it, while lost
// is true.
type unreached struct {
	next   *http.Client
	lost   bool
	tokens int // reads with a token
}

func (u *unreached) Do(r *http.Request) (*http.Response, error) {
	key := r.Header.Get("x-ms-documentdb-partitionkey")
	if r.Method != http.MethodGet || r.Header.Get("x-ms-session-token") == "" || key != `["k"]` && key != `["j"]` {
		return u.next.Do(r)
	}
	if u.tokens++; !u.lost {
		return u.next.Do(r)
	}
	header := http.Header{"X-Ms-Substatus": {"1002"}}
	return &http.Response{StatusCode: http.StatusNotFound, Status: "404 Not Found", Header: header, Body: http.NoBody, Request: r}, nil
}

// Replicas may lag twice within some minutes, or hours apart. The session token is forgotten only if none reaches it for long, also
// while those of another partition do: a failover may lose the writes of one alone.
func TestSessionTokenIsForgottenOnlyIfNoReplicaReachesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emulator := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()})
		must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{cosmos.PartitionKeyPath}}))
		replicas := &unreached{next: emulator.HTTPClient()}
		client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: replicas}})
		must(t, err)
		t.Cleanup(client.Close)
		container, err := client.NewContainer("contacts", "parked")
		must(t, err)
		store, err := parked.NewStore(container)
		must(t, err)
		parkAt(t, store, "k", &relay.Closing{Event: "e1"}, parkedEvent("e1", []byte(`{}`)))
		parkAt(t, store, "j", &relay.Closing{Event: "e2"}, parkedEvent("e2", []byte(`{}`)))
		readKey := func(key string, lost bool) (withToken bool) {
			t.Helper()
			before := replicas.tokens
			replicas.lost = lost
			if _, err := store.Gate(t.Context(), key); lost != fault.Is(err, fault.Unavailable) || !lost && err != nil {
				t.Errorf("no replica has the token: %t; error %v", lost, err)
			}
			return replicas.tokens > before
		}
		read := func(lost bool) (withToken bool) { t.Helper(); return readKey("k", lost) }
		for range 2 {
			if !read(true) || !read(false) {
				t.Error("a read had no session token, and each lag was short")
			}
			time.Sleep(5 * time.Minute)
		}
		readKey("j", true)
		for range 2 {
			read(true)
			time.Sleep(40 * time.Second)
			if _, err := store.Gate(t.Context(), "other"); !fault.Is(err, fault.NotFound) {
				t.Error(err)
			}
		}
		read(true)
		if read(false) {
			t.Error("no replica has reached the session token for two minutes, and it is still required")
		}
		for range 2 { // the token is a new one
			readKey("j", true)
			if !read(false) {
				t.Error("the new session token was forgotten after a short lag")
			}
			time.Sleep(time.Hour)
		}
	})
}
