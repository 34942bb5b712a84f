package changefeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/bench/measure"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// body is 512 bytes of a document's data.
var body = string(make512())

func make512() []byte {
	b := make([]byte, 512)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}

// drain runs hosts until they have handled n documents, and reports the processor
// time of each.
func drain(b *testing.B, hosts, n int, connect func(host string) (changefeed.Feed, changefeed.LeaseStore), o changefeed.Options) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var handled atomic.Int64
	all := make(chan struct{})
	handler := changefeed.HandlerFunc(func(_ context.Context, batch *changefeed.Batch) error {
		if handled.Add(int64(len(batch.Items))) == int64(n) {
			close(all)
		}
		return nil
	})
	began, cpu := time.Now(), measure.CPU()
	ended := make(chan error, hosts)
	for i := range hosts {
		o := o
		o.Host = fmt.Sprintf("h%d", i)
		feed, store := connect(o.Host)
		p, err := changefeed.New(feed, store, handler, &o)
		if err != nil {
			b.Fatal(err)
		}
		go func() { ended <- p.Run(ctx) }()
	}
	select {
	case <-all:
	case err := <-ended:
		b.Fatalf("Run ended: %v", err)
	}
	took, used := time.Since(began), measure.CPU()-cpu
	cancel()
	for range hosts {
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(measure.Micros(used)/float64(n), "cpu-µs/doc")
	b.ReportMetric(float64(n)/took.Seconds(), "docs/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory is the processor alone: a feed and a lease store that cost almost
// nothing. The floor reads the same pages in a loop.
func BenchmarkMemory(b *testing.B) {
	const n = 400_000
	for _, tt := range []struct{ ranges, hosts, lanes int }{{1, 1, 1}, {1, 1, 16}, {64, 1, 1}, {64, 8, 1}, {256, 8, 1}} {
		feed, err := newShelf(b.Context(), tt.ranges, n)
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("ranges=%d/hosts=%d/lanes=%d", tt.ranges, tt.hosts, tt.lanes)
		b.Run(name+"/floor", func(b *testing.B) { readAll(b, feed, n) })
		b.Run(name+"/processor", func(b *testing.B) {
			store := memstore.New(nil)
			drain(b, tt.hosts, n, func(string) (changefeed.Feed, changefeed.LeaseStore) { return feed, store },
				changefeed.Options{Lanes: tt.lanes})
		})
	}
}

// readAll is the floor: every page of every range, and nothing done with it.
func readAll(b *testing.B, feed changefeed.Feed, n int) {
	b.Helper()
	began, cpu := time.Now(), measure.CPU()
	ranges, err := feed.Ranges(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	got := 0
	for _, r := range ranges {
		for token := ""; ; {
			page, err := feed.Read(b.Context(), changefeed.ReadRequest{Range: r, Continuation: token, MaxItems: 100})
			if err != nil {
				b.Fatal(err)
			}
			if page.CaughtUp {
				break
			}
			got += len(page.Items)
			token = page.Continuation
			if page.Release != nil {
				page.Release()
			}
		}
	}
	if got != n {
		b.Fatalf("read %d documents of %d", got, n)
	}
	b.ReportMetric(measure.Micros(measure.CPU()-cpu)/float64(n), "cpu-µs/doc")
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "docs/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCosmos is the processor over azcosmos against the emulator in this
// process, which is part of both figures. The floor is a bare ReadChangeFeed loop.
func BenchmarkCosmos(b *testing.B) {
	const n = 50_000
	for _, ranges := range []int{1, 8, 64} {
		srv := cosmosemu.StartT(b, &cosmosemu.Options{})
		for _, c := range []cosmosemu.ContainerProps{{ID: "data", PartitionKey: []string{"/pk"}, Partitions: ranges}, {ID: "leases", PartitionKey: []string{"/id"}}} {
			if err := srv.CreateContainer("db", c); err != nil {
				b.Fatal(err)
			}
		}
		fill(b, srv, n)
		client := connect(b, srv)
		b.Run(fmt.Sprintf("ranges=%d/floor", ranges), func(b *testing.B) { bareLoop(b, client, n) })
		b.Run(fmt.Sprintf("ranges=%d/processor", ranges), func(b *testing.B) {
			feed, err := cosmosfeed.NewFeed(client, "db", "data", nil)
			if err != nil {
				b.Fatal(err)
			}
			store, err := cosmosfeed.NewLeaseStore(client, "db", "leases")
			if err != nil {
				b.Fatal(err)
			}
			drain(b, 1, n, func(string) (changefeed.Feed, changefeed.LeaseStore) { return feed, store },
				changefeed.Options{Processor: fmt.Sprintf("p%d", time.Now().UnixNano())})
		})
	}
}

func connect(b *testing.B, srv *cosmosemu.Server) *azcosmos.Client {
	b.Helper()
	key, err := azcosmos.NewKeyCredential(srv.Key())
	if err != nil {
		b.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(srv.Endpoint(), key, cosmosfeed.ClientOptions(srv.ClientOptions()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return client
}

// fill writes n documents, a hundred in a batch.
func fill(b *testing.B, srv *cosmosemu.Server, n int) {
	b.Helper()
	data, err := connect(b, srv).NewContainer("db", "data")
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < n; i += 100 {
		pk := fmt.Sprintf("key-%d", i/100)
		batch := data.NewTransactionalBatch(azcosmos.NewPartitionKeyString(pk))
		for j := range 100 {
			doc, err := json.Marshal(map[string]any{"id": fmt.Sprint(i + j), "pk": pk, "data": body})
			if err != nil {
				b.Fatal(err)
			}
			batch.CreateItem(doc, nil)
		}
		if resp, err := data.ExecuteTransactionalBatch(b.Context(), batch, nil); err != nil || !resp.Success {
			b.Fatal(errors.Join(err, errors.New("the batch was refused")))
		}
	}
}

// bareLoop reads every range with the SDK and does nothing with it.
func bareLoop(b *testing.B, client *azcosmos.Client, n int) {
	b.Helper()
	data, err := client.NewContainer("db", "data")
	if err != nil {
		b.Fatal(err)
	}
	began, cpu := time.Now(), measure.CPU()
	ranges, err := data.ReadFeedRanges(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	got := 0
	for i := range ranges {
		o := &azcosmos.ChangeFeedOptions{FeedRange: &ranges[i], MaxItemCount: 100}
		for {
			page, err := data.ReadChangeFeed(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			if len(page.Items) == 0 {
				break
			}
			got += len(page.Items)
			o = &azcosmos.ChangeFeedOptions{Continuation: &page.ContinuationToken, MaxItemCount: 100}
		}
	}
	if got != n {
		b.Fatalf("read %d documents of %d", got, n)
	}
	b.ReportMetric(measure.Micros(measure.CPU()-cpu)/float64(n), "cpu-µs/doc")
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "docs/s")
	b.ReportMetric(0, "ns/op")
}
