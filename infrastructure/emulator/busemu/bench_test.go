package busemu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

const benchBody = 512 // bytes of a message's body

// BenchmarkThroughput measures messages per second of the SDK's client against
// the floor, the emulator in memory and the emulator on disk, taking turns, and
// reports the medians and their ratios to the floor. Client and broker share the
// machine.
//
//	go test -run '^$' -bench Throughput -benchtime 1x ./infrastructure/emulator/busemu
func BenchmarkThroughput(b *testing.B) {
	for _, s := range []struct {
		name     string
		inFlight int
		run      func(b *testing.B, c *azservicebus.Client, inFlight int) (messages int)
		queue    QueueProperties
	}{
		{"single/in-flight=64", 64, sendSingles, QueueProperties{}},
		{"batch=10/in-flight=1", 1, sendBatches(10, 1000), QueueProperties{}},
		{"batch=10/in-flight=64", 64, sendBatches(10, 100), QueueProperties{}},
		{"batch=100/in-flight=1", 1, sendBatches(100, 300), QueueProperties{}},
		{"batch=100/in-flight=64", 64, sendBatches(100, 15), QueueProperties{}},
		{"receive/sessions=1000/in-flight=16", 16, receiveSessions, QueueProperties{RequiresSession: true}},
	} {
		b.Run(s.name, func(b *testing.B) {
			for range b.N {
				compare(b, s.queue, s.inFlight, s.run)
			}
		})
	}
}

const benchRounds = 5

func compare(b *testing.B, queue QueueProperties, inFlight int, run func(*testing.B, *azservicebus.Client, int) int) {
	payload := benchMessage()
	rates := map[string][]float64{}
	for range benchRounds {
		for _, kind := range []string{"floor", "memory", "durable"} {
			rate := func() float64 {
				cs, stop := startBench(b, kind, queue, payload)
				defer stop()
				c, err := azservicebus.NewClientFromConnectionString(cs, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close(context.Background())
				start := time.Now()
				n := run(b, c, inFlight)
				return float64(n) / time.Since(start).Seconds()
			}()
			rates[kind] = append(rates[kind], rate)
		}
	}
	median := func(kind string) float64 { slices.Sort(rates[kind]); return rates[kind][benchRounds/2] }
	b.ReportMetric(median("floor"), "floor-msg/s")
	b.ReportMetric(median("memory"), "memory-msg/s")
	b.ReportMetric(median("durable"), "durable-msg/s")
	b.ReportMetric(median("memory")/median("floor"), "memory/floor")
	b.ReportMetric(median("durable")/median("floor"), "durable/floor")
	b.ReportMetric(0, "ns/op")
}

// startBench starts one of the three brokers with a queue "bench", filled if its
// sessions are to be received.
func startBench(b *testing.B, kind string, queue QueueProperties, payload []byte) (connectionString string, stop func()) {
	if kind == "floor" {
		f := startFloor(b, payload)
		return f.connectionString(), func() {}
	}
	o := &Options{AdminAddr: "-", Topology: &Topology{Queues: []Queue{{Name: "bench", QueueProperties: queue}}}}
	if kind == "durable" {
		o.DataDir = b.TempDir()
	}
	s, err := Start(o)
	if err != nil {
		b.Fatal(err)
	}
	if queue.RequiresSession {
		fill(b, s)
	}
	return s.ConnectionString(), func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
}

func fill(b *testing.B, s *Server) {
	c := s.Client()
	defer c.Close(context.Background())
	sender, err := c.NewSender("bench", nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range benchSessions {
		session := fmt.Sprintf("s%d", i)
		batch, err := sender.NewMessageBatch(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		for range benchPerSession {
			if err := batch.AddMessage(&azservicebus.Message{Body: make([]byte, benchBody), SessionID: &session}, nil); err != nil {
				b.Fatal(err)
			}
		}
		if err := sender.SendMessageBatch(context.Background(), batch, nil); err != nil {
			b.Fatal(err)
		}
	}
}

const (
	benchSessions   = 1000
	benchPerSession = 10
)

func benchMessage() []byte {
	var p amqp.Properties
	p.SetText(amqp.MessageID, "0123456789abcdef0123456789abcdef")
	w := amqp.BeginMapSection((&amqp.Header{}).Append(nil), amqp.CodeMessageAnnotations)
	w.Timestamp(annotationEnqueuedTime, amqp.TimestampOf(time.Now()))
	w.Long(annotationSequence, 1<<40)
	w.Timestamp(annotationLockedUntil, amqp.TimestampOf(time.Now()))
	return amqp.AppendData(p.Append(w.Finish()), make([]byte, benchBody))
}

func inParallel(b *testing.B, n int, work func() error) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := work(); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

func sendSingles(b *testing.B, c *azservicebus.Client, inFlight int) int {
	sender, err := c.NewSender("bench", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer sender.Close(context.Background())
	const each = 400
	inParallel(b, inFlight, func() error {
		for range each {
			if err := sender.SendMessage(context.Background(), &azservicebus.Message{Body: make([]byte, benchBody)}, nil); err != nil {
				return err
			}
		}
		return nil
	})
	return inFlight * each
}

func sendBatches(size, each int) func(*testing.B, *azservicebus.Client, int) int {
	return func(b *testing.B, c *azservicebus.Client, inFlight int) int {
		sender, err := c.NewSender("bench", nil)
		if err != nil {
			b.Fatal(err)
		}
		defer sender.Close(context.Background())
		inParallel(b, inFlight, func() error {
			for range each {
				batch, err := sender.NewMessageBatch(context.Background(), nil)
				if err != nil {
					return err
				}
				for range size {
					if err := batch.AddMessage(&azservicebus.Message{Body: make([]byte, benchBody)}, nil); err != nil {
						return err
					}
				}
				if err := sender.SendMessageBatch(context.Background(), batch, nil); err != nil {
					return err
				}
			}
			return nil
		})
		return inFlight * each * size
	}
}

// receiveSessions accepts 1,000 sessions and receives and completes the 10
// messages of each.
func receiveSessions(b *testing.B, c *azservicebus.Client, inFlight int) int {
	var left atomic.Int64
	left.Store(benchSessions)
	inParallel(b, inFlight, func() error {
		ctx := context.Background()
		for left.Add(-1) >= 0 {
			r, err := c.AcceptNextSessionForQueue(ctx, "bench", nil)
			if err != nil {
				return err
			}
			for got := 0; got < benchPerSession; {
				messages, err := r.ReceiveMessages(ctx, benchPerSession-got, nil)
				if err != nil {
					return err
				}
				got += len(messages)
				errs := make([]error, len(messages))
				var wg sync.WaitGroup
				for i, m := range messages {
					wg.Go(func() { errs[i] = r.CompleteMessage(ctx, m, nil) })
				}
				wg.Wait()
				if err := errors.Join(errs...); err != nil {
					return err
				}
			}
			if err := r.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return benchSessions * benchPerSession
}
