package servicebus

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/store/document"
)

// BenchmarkPublish sends events of 512 bytes over a pipe to an emulator in the same process.
// cpu-ns/event is the processor time of client and emulator.
func BenchmarkPublish(b *testing.B) {
	for _, bench := range []struct {
		name      string
		keys, per int // of a page
		opts      PublisherOptions
	}{
		{"batch per key, 10 events each", 100, 10, PublisherOptions{}},
		{"batch per key, 2 events each", 250, 2, PublisherOptions{}},
		{"batch per key, 1 event each", 500, 1, PublisherOptions{}},
		{"packed, 10 events each", 100, 10, PublisherOptions{PackKeys: true}},
		{"packed, 1 event each", 1000, 1, PublisherOptions{PackKeys: true}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p := benchPublisher(b, &bench.opts)
			groups := benchPage(bench.keys, bench.per)
			events := bench.keys * bench.per
			round := 0
			ids := func() { // ids must be new, or the broker drops the messages
				round++
				for g := range groups {
					for i := range groups[g].Messages {
						groups[g].Messages[i].ID = "d6a5f4b2-84c3-4ac7-" + strconv.Itoa(1e6+round) + "-" + strconv.Itoa(1e6+g*bench.per+i)
					}
				}
			}
			ids()
			if err := p.Publish(b.Context(), groups); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				ids()
				if err := p.Publish(b.Context(), groups); err != nil {
					b.Fatal(err)
				}
			}
			spent := cpuTime(b) - before
			b.ReportMetric(float64(spent)/float64(b.N*events), "cpu-ns/event")
			b.ReportMetric(float64(b.N*events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// benchPublisher returns a publisher to an emulator in the same process.
func benchPublisher(b *testing.B, opts *PublisherOptions) *Publisher {
	b.Helper()
	server := busemu.StartT(b, &busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{{
		Name: "contacts", RequiresDuplicateDetection: true,
	}}}})
	n := &network{server: server}
	client, err := NewClient(ClientConfig{ConnectionString: server.ConnectionString(), Dial: n.dial})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close(context.WithoutCancel(b.Context())) })
	p, err := NewPublisher(client, "contacts", opts)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func benchPage(keys, per int) []relay.Group {
	var groups []relay.Group
	for k := range keys {
		g := relay.Group{Key: fmt.Sprintf("b5sourcee7aa-4982-4735-9422-%012d", k)}
		for i := range per {
			g.Messages = append(g.Messages, relay.Message{
				Key: g.Key, Action: "ContactNameUpdatedEvent", Body: bytes.Repeat([]byte{'x'}, 512), Sequence: int64(1000 + i),
				AggregateVersion: int64(1000 + i), CreatedAt: "2026-03-01T11:07:37.3022907+02:00",
				Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			})
		}
		groups = append(groups, g)
	}
	return groups
}

// cpuTime returns the processor time of the process in nanoseconds.
func cpuTime(tb testing.TB) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkEncode adds messages to a full batch, which only encodes them: the cost of a message for the
// client.
func BenchmarkEncode(b *testing.B) {
	groups := benchPage(1, 1)
	m := &groups[0].Messages[0]
	m.ID = "d6a5f4b2-84c3-4ac7-asource2-6f4025ba9ca0"
	e, source := encoder{}, any("/contacts")
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.encode(m, source)
		}
	})
}

// BenchmarkRelay sends pages of stored documents, with 1,000 events of 100 contacts and the contacts,
// through decoder, relay, publisher and client to an emulator.
func BenchmarkRelay(b *testing.B) {
	for _, pack := range []bool{false, true} {
		b.Run(fmt.Sprintf("pack=%v", pack), func(b *testing.B) {
			p := benchPublisher(b, &PublisherOptions{PackKeys: pack})
			r, err := relay.New(document.EventDecoder{}, p, &relay.Options{Observer: relay.Observer{Missing: func(context.Context, relay.Missing) {}}})
			if err != nil {
				b.Fatal(err)
			}
			const keys, per = 100, 10
			var page []relay.Change
			for n := range per {
				for k := range keys {
					page = append(page, relay.Change{LSN: int64(1 + n*keys + k), Raw: fmt.Appendf(nil,
						`{"id":"d6a5f4b2-84c3-4ac7-%012d","partitionKey":"b5sourcee7aa-4982-4735-9422-%012d","type":"domainEvent","data":{"name":{"firstName":"Jane","lastName":"%s"},"contactId":"b5sourcee7aa-4982-4735-9422-%012d","action":"ContactNameUpdatedEvent","id":"d6a5f4b2-84c3-4ac7-%012d","createdAt":"2026-03-01T11:07:37.3022907+02:00","aggregateVersion":%d,"sequence":%d},"ttl":864000,"_rid":"abcdefghijk=","_etag":"\"00000000-0000-0000-0000-000000000000\"","_ts":1772000000,"_lsn":1}`,
						0, k, bytes.Repeat([]byte{'x'}, 240), k, 0, n+1, n+1)})
				}
			}
			round := 0
			renew := func() { // every event needs a new id, or the broker drops it
				round++
				for i := range page {
					id := strconv.AppendInt(nil, int64(1e11+round*len(page)+i), 10)
					copy(page[i].Raw[len(`{"id":"d6a5f4b2-84c3-4ac7-`):], id)
				}
			}
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				renew()
				if err := r.Handle(b.Context(), relay.Ownership{}, page); err != nil {
					b.Fatal(err)
				}
			}
			spent := cpuTime(b) - before
			b.ReportMetric(float64(spent)/float64(b.N*len(page)), "cpu-ns/event")
			b.ReportMetric(float64(b.N*len(page))/b.Elapsed().Seconds(), "events/s")
		})
	}
}
