package push

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/consumer"
)

// benched returns a sender to a receiver in this process, which counts the requests.
func benched(b *testing.B, o Options) (s *Sender, requests *atomic.Int64) {
	b.Helper()
	requests = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		requests.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	b.Cleanup(server.Close)
	o.To, o.Logger = server.URL, slog.New(slog.DiscardHandler)
	s, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	return s, requests
}

var body = []byte(`{"action":"OrderPaid","amount":120,"text":"` + fmt.Sprintf("%0400d", 0) + `"}`)

// BenchmarkEvents sends events of many keys, one event in a request.
func BenchmarkEvents(b *testing.B) {
	for _, mode := range []Mode{Structured, Binary} {
		b.Run(string(mode), func(b *testing.B) {
			s, _ := benched(b, Options{Mode: mode})
			var keys atomic.Int64
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				key := fmt.Sprint("key", keys.Add(1))
				for n := int64(1); pb.Next(); n++ {
					if err := s.Handle(b.Context(), &consumer.Event{ID: key, Key: key, Action: "OrderPaid", Sequence: n, CreatedAt: time.Now(), Body: body}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkLatency measures the time of an event at 1,000 events a second, from the call to the answer.
func BenchmarkLatency(b *testing.B) {
	s, _ := benched(b, Options{})
	var mu sync.Mutex
	var all []time.Duration
	var sending sync.WaitGroup
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := range max(b.N, 2000) {
		<-tick.C
		sending.Go(func() {
			began := time.Now()
			key := fmt.Sprint("key", n)
			if err := s.Handle(b.Context(), &consumer.Event{ID: key, Key: key, Action: "OrderPaid", Sequence: 1, Body: body}); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(began))
		})
	}
	sending.Wait()
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1000, "p99-ms")
}

// BenchmarkDocuments sends the change feed of a container, in batches of a key.
func BenchmarkDocuments(b *testing.B) {
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprint("batch", size), func(b *testing.B) {
			s, _ := benched(b, Options{Mode: Batch})
			feed := memfeed.New(nil)
			const keys = 100
			documents := max(b.N, 20_000)
			for n := range documents {
				feed.Put(memfeed.Document{ID: fmt.Sprint(n), Key: fmt.Sprint("key", n%keys), Data: string(body)})
			}
			var done atomic.Int64
			handler := s.Documents(DocumentOptions{Type: "changed", Batch: size})
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
			for done.Load() < int64(documents) {
				time.Sleep(time.Millisecond)
			}
			b.ReportMetric(float64(documents)/time.Since(began).Seconds(), "documents/s")
			b.StopTimer()
			cancel()
			running.Wait()
		})
	}
}
