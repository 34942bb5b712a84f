package push

import (
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
