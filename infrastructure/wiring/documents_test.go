package wiring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.uber.org/fx"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/consumer/push"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/process/config"
)

// Documents reach the receiver in the order of their keys, whatever it answers, and the checkpoint
// passes only those that it has accepted.
func TestDocumentsKeepTheOrderOfTheirKeys(t *testing.T) {
	const keys, each = 12, 25
	for _, o := range []struct {
		mode  push.Mode
		batch int
	}{{push.Structured, 1}, {push.Binary, 1}, {push.Batch, 10}} {
		const seed = 1
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(seed, 0))
		got, largest := map[string][]int{}, 0
		pushBubble(t, push.Options{Mode: o.mode, Requests: 8}, func(w http.ResponseWriter, r *http.Request) {
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
		}, func(t *testing.T, s *push.Sender) {
			feed := memfeed.New(nil)
			for n := range each {
				for k := range keys {
					key := fmt.Sprint("key", k)
					feed.Put(memfeed.Document{ID: fmt.Sprintf("%s-%d", key, n), Key: key})
				}
			}
			runDocuments(t, s, feed, o.batch, changefeed.PoisonStop, func() bool {
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
	pushBubble(t, push.Options{Mode: push.Batch}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		events := received(t, r)
		if slices.ContainsFunc(events, func(e pushedEvent) bool { return e.Subject == "key-3" }) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		for _, e := range events {
			got = append(got, e.Subject)
		}
	}, func(t *testing.T, s *push.Sender) {
		feed := memfeed.New(nil)
		for n := range 6 {
			feed.Put(memfeed.Document{ID: fmt.Sprint("key-", n), Key: "key"})
		}
		runDocuments(t, s, feed, 10, changefeed.PoisonSkip, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(got, "key-5")
		})
		if want := []string{"key-0", "key-1", "key-2", "key-4", "key-5"}; !slices.Equal(got, want) {
			t.Errorf("accepted: %v, want %v", got, want)
		}
	})
}

// A receiver that takes each document, but not all in one request, would hold its keys for ever.
func TestBatchThatIsTooLargeIsDivided(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]string{}
	accepted := 0
	pushBubble(t, push.Options{Mode: push.Batch}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		events := received(t, r)
		if len(events) > 2 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		for _, e := range events {
			got[e.Key] = append(got[e.Key], e.Subject)
			accepted++
		}
	}, func(t *testing.T, s *push.Sender) {
		feed := memfeed.New(nil)
		for n := range 5 {
			for _, key := range []string{"a", "b", "c", "d"} { // more than open the circuit breaker
				feed.Put(memfeed.Document{ID: fmt.Sprint(n), Key: key})
			}
		}
		runDocuments(t, s, feed, 10, changefeed.PoisonStop, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return accepted >= 20
		})
		for key, of := range got {
			if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(of, want) {
				t.Errorf("key %s: accepted %v, want %v", key, of, want)
			}
		}
		if accepted != 20 {
			t.Errorf("%d documents accepted, want 20", accepted)
		}
	})
}

// A refused document is not dead-lettered, so the reason of its key must not say so.
func TestHeldDocumentReportsTheReply(t *testing.T) {
	pushBubble(t, push.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}, func(t *testing.T, s *push.Sender) {
		for _, hold := range []bool{true, false} {
			feed, log := memfeed.New(nil), &bytes.Buffer{}
			feed.Put(memfeed.Document{ID: "key-0", Key: "key"})
			o := &changefeed.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Start: changefeed.FromBeginning()}
			if !hold {
				o.MaxAttempts, o.Poison = 1, changefeed.PoisonSkip
			}
			p, err := changefeed.New(feed, memstore.New(nil), documents(s, push.DocumentOptions{Type: "changed"}, hold), o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			err = p.Run(ctx)
			cancel()
			if text := log.String(); err != nil || !strings.Contains(text, "the receiver answered 422") || strings.Contains(text, "dead letter") {
				t.Errorf("hold %t: %v: %s", hold, err, text)
			}
		}
	})
}

// runDocuments runs a processor with the documents handler of s until done, for an hour of the bubble at most.
func runDocuments(t *testing.T, s *push.Sender, feed changefeed.Feed, batch int, poison changefeed.PoisonPolicy, done func() bool) {
	t.Helper()
	p, err := changefeed.New(feed, memstore.New(nil), documents(s, push.DocumentOptions{Type: "changed", Batch: batch}, poison == changefeed.PoisonStop), &changefeed.Options{
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

// pushedEvent has the attributes of a document.
type pushedEvent struct {
	ID, Subject string
	Key         string `json:"partitionkey"`
}

// received returns the events of a request of any mode.
func received(t *testing.T, r *http.Request) (events []pushedEvent) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	if id := r.Header.Get("Ce-Id"); id != "" {
		return []pushedEvent{{ID: id, Subject: r.Header.Get("Ce-Subject"), Key: r.Header.Get("Ce-Partitionkey")}}
	}
	if json.Unmarshal(body, &events) != nil {
		events = make([]pushedEvent, 1)
		if err := json.Unmarshal(body, &events[0]); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
	return events
}

// pushBubble runs test in a synctest bubble, with a receiver that answers by serve.
func pushBubble(t *testing.T, o push.Options, serve http.HandlerFunc, test func(t *testing.T, s *push.Sender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		transport, stop, err := pipenet.Serve("receiver:80", serve)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		o.To, o.Transport, o.Logger = "http://receiver:80/events", transport, slog.New(slog.DiscardHandler)
		s, err := push.New(o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

// The documents of a container reach the receiver in the order of their partition keys, and a second
// process continues after the checkpoint of the first.
func TestFeedSendsTheDocumentsOfAContainer(t *testing.T) {
	srv, err := cosmosemu.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	for id, key := range map[string]string{"orders": "/customer", "leases": "/id"} {
		if err := srv.CreateContainer("shop", cosmosemu.ContainerProps{ID: id, PartitionKey: []string{key}}); err != nil {
			t.Fatal(err)
		}
	}
	container, err := srv.Client().NewContainer("shop", "orders")
	if err != nil {
		t.Fatal(err)
	}
	const keys, each = 4, 6
	create := func(from, to int) {
		for n := from; n < to; n++ {
			for k := range keys {
				key := fmt.Sprint("key", k)
				body := fmt.Sprintf(`{"id":"%s-%d","customer":"%s"}`, key, n, key)
				if _, err := container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), []byte(body), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	p := receive(t, nil)
	load := func() *config.Feed {
		cfg, err := config.LoadFeed([]string{
			"FEEDBOX_COSMOS_ENDPOINT=" + srv.Endpoint(), "FEEDBOX_COSMOS_KEY=" + srv.Key(), "FEEDBOX_COSMOS_DATABASE=shop", "FEEDBOX_COSMOS_CONTAINER=orders",
			"FEEDBOX_PUSH_TO=" + p.URL,
		})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	create(0, each/2)
	stop := runs(t, func(given Params) fx.Option { return Feed(load(), given) })
	p.await(t, keys*each/2)
	stop()
	create(each/2, each)
	stop = runs(t, func(given Params) fx.Option { return Feed(load(), given) })
	got := p.await(t, keys*each)
	stop()
	for key, ids := range got {
		want := make([]string, each)
		for n := range want {
			want[n] = fmt.Sprintf("%s-%d", key, n)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s: %v, want %v", key, ids, want)
		}
	}
}

// BenchmarkDocuments sends the change feed of a container, in batches of a key.
func BenchmarkDocuments(b *testing.B) {
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprint("batch", size), func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusNoContent)
			}))
			b.Cleanup(server.Close)
			s, err := push.New(push.Options{To: server.URL, Mode: push.Batch, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			body := `{"action":"OrderPaid","amount":120,"text":"` + fmt.Sprintf("%0400d", 0) + `"}`
			feed := memfeed.New(nil)
			const keys = 100
			total := max(b.N, 20_000)
			for n := range total {
				feed.Put(memfeed.Document{ID: fmt.Sprint(n), Key: fmt.Sprint("key", n%keys), Data: body})
			}
			var done atomic.Int64
			handler := documents(s, push.DocumentOptions{Type: "changed", Batch: size}, false)
			counted := changefeed.HandlerFunc(func(ctx context.Context, batch *changefeed.Batch) error {
				err := handler.Handle(ctx, batch)
				done.Add(int64(len(batch.Items)))
				return err
			})
			p, err := changefeed.New(feed, memstore.New(nil), counted, &changefeed.Options{Lanes: 16, MaxItems: 1000, PollMin: time.Millisecond, PollMax: time.Second, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			b.ResetTimer()
			began := time.Now()
			var running sync.WaitGroup
			running.Go(func() { _ = p.Run(ctx) })
			for done.Load() < int64(total) {
				time.Sleep(time.Millisecond)
			}
			b.ReportMetric(float64(total)/time.Since(began).Seconds(), "documents/s")
			b.StopTimer()
			cancel()
			running.Wait()
		})
	}
}
