package push

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

// Documents reach the receiver in the order of their keys, whatever it answers, and the checkpoint
// passes only those that it has accepted.
func TestDocumentsKeepTheOrderOfTheirKeys(t *testing.T) {
	const keys, each = 12, 25
	for _, o := range []struct {
		mode  Mode
		batch int
	}{{Structured, 1}, {Binary, 1}, {Batch, 10}} {
		seed := rand.Uint64()
		t.Logf("%s: seed %d", o.mode, seed)
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(seed, 0))
		got, largest := map[string][]int{}, 0
		bubble(t, Options{Mode: o.mode, Requests: 8}, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if n := random.IntN(10); n < 4 {
				if n == 0 {
					w.Header().Set("Retry-After", "1")
				}
				w.WriteHeader([]int{429, 500, 404, 503}[n])
				return
			}
			events := received(t, r)
			largest = max(largest, len(events))
			for _, e := range events {
				var n int
				if _, err := fmt.Sscanf(e.ID, e.Key+"-%d@", &n); err != nil {
					t.Errorf("id %q of key %q", e.ID, e.Key)
				}
				if at := got[e.Key]; len(at) == 0 || at[len(at)-1] < n { // a repetition is no error
					got[e.Key] = append(at, n)
				}
			}
		}, func(t *testing.T, s *Sender) {
			feed := memfeed.New(nil)
			for n := range each {
				for k := range keys {
					key := fmt.Sprint("key", k)
					feed.Put(memfeed.Document{ID: fmt.Sprintf("%s-%d", key, n), Key: key})
				}
			}
			run(t, s, feed, o.batch, changefeed.PoisonStop, func() bool {
				mu.Lock()
				defer mu.Unlock()
				n := 0
				for _, at := range got {
					n += len(at)
				}
				return n == keys*each
			})
			for key, at := range got {
				if want := sequence(each); !slices.Equal(at, want) {
					t.Errorf("%s: key %s: %v", o.mode, key, at)
				}
			}
			if o.batch > 1 && largest < 2 {
				t.Errorf("%s: the largest batch has %d documents", o.mode, largest)
			}
		})
	}
}

// A refused document of a batch is found by sending the batch one by one; the policy of the processor
// decides about it, and the others are sent.
func TestRefusedDocumentOfABatchIsFound(t *testing.T) {
	var mu sync.Mutex
	var got []string
	bubble(t, Options{Mode: Batch}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		events := received(t, r)
		if slices.ContainsFunc(events, func(e Event) bool { return e.Subject == "key-3" }) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		for _, e := range events {
			got = append(got, e.Subject)
		}
	}, func(t *testing.T, s *Sender) {
		feed := memfeed.New(nil)
		for n := range 6 {
			feed.Put(memfeed.Document{ID: fmt.Sprint("key-", n), Key: "key"})
		}
		run(t, s, feed, 10, changefeed.PoisonSkip, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(got, "key-5")
		})
		if want := []string{"key-0", "key-1", "key-2", "key-4", "key-5"}; !slices.Equal(got, want) {
			t.Errorf("accepted: %v, want %v", got, want)
		}
	})
}

// run runs a processor with the documents handler of s until done, for an hour of the bubble at most.
func run(t *testing.T, s *Sender, feed changefeed.Feed, batch int, poison changefeed.PoisonPolicy, done func() bool) {
	t.Helper()
	p, err := changefeed.New(feed, memstore.New(nil), s.Documents(DocumentOptions{Type: "changed", Batch: batch, Hold: poison == changefeed.PoisonStop}), &changefeed.Options{
		Lanes: 4, MaxAttempts: 1, Poison: poison, Logger: slog.New(slog.DiscardHandler), Start: changefeed.FromBeginning(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	for !done() && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond) // of the bubble
	}
	if ctx.Err() != nil {
		t.Error("not all documents were accepted in an hour")
	}
	cancel()
	running.Wait()
}

func sequence(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// received returns the events of a request of any mode.
func received(t *testing.T, r *http.Request) (events []Event) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	one := func(mode Mode, body []byte) {
		a, data := decode(t, mode, body, r.Header)
		lsn, _ := strconv.ParseInt(a["lsn"], 10, 64)
		events = append(events, Event{ID: a["id"], Key: a["partitionkey"], Subject: a["subject"], LSN: lsn, Data: []byte(data)})
	}
	if r.Header.Get("Ce-Id") != "" {
		one(Binary, body)
		return events
	}
	var all []json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		all = []json.RawMessage{body}
	}
	for _, raw := range all {
		one(Structured, raw)
	}
	return events
}
