package servicebus

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"
	"testing"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/busemu"
)

// BenchmarkPublish sends events of 512 bytes to the emulator over a pipe, emulator and
// client in one process. cpu-ns/event is the processor time of both.
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
		{"packed, without CloudEvents", 100, 10, PublisherOptions{PackKeys: true, OmitCloudEvents: true}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			server := busemu.StartT(b, &busemu.Options{Addr: "-", AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{{
				Name: "contacts", TopicProperties: busemu.TopicProperties{RequiresDuplicateDetection: true},
			}}}})
			n := &network{server: server}
			client, err := NewClient(ClientConfig{ConnectionString: server.ConnectionString(), Dial: n.dial})
			if err != nil {
				b.Fatal(err)
			}
			p, err := NewPublisher(client, "contacts", &bench.opts)
			if err != nil {
				b.Fatal(err)
			}
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
			if err := client.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}

func benchPage(keys, per int) []relay.Group {
	var groups []relay.Group
	for k := range keys {
		g := relay.Group{Key: fmt.Sprintf("b5e2e7aa-4982-4735-9422-%012d", k)}
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

// BenchmarkEncode adds messages to a batch that takes none, which encodes them all the
// same: the client's cost of one message.
func BenchmarkEncode(b *testing.B) {
	groups := benchPage(1, 1)
	m := &groups[0].Messages[0]
	m.ID = "d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0"
	e := encoder{source: "/contacts"}
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.next(m)
		}
	})
}
