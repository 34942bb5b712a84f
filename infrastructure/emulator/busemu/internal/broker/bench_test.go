package broker

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// openBench opens a broker in memory or on the disk, where fsync is real.
func openBench(b *testing.B, durable bool) *Broker {
	b.Helper()
	o := &Options{}
	if durable {
		o.Dir = b.TempDir()
	}
	broker, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := broker.Close(); err != nil {
			b.Error(err)
		}
	})
	return broker
}

func benchModes(b *testing.B, bench func(b *testing.B, broker *Broker)) {
	for _, durable := range []bool{false, true} {
		b.Run(map[bool]string{false: "memory", true: "durable"}[durable], func(b *testing.B) {
			bench(b, openBench(b, durable))
		})
	}
}

// BenchmarkSend sends 512-byte messages to a topic with one session subscription of
// 20,000 sessions: the shape of the outbox relay.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			benchModes(b, func(b *testing.B, broker *Broker) {
				topology(b, broker)
				s, err := broker.OpenSender("t", nil)
				if err != nil {
					b.Fatal(err)
				}
				inFlight := make(chan struct{}, 64)
				b.ReportAllocs()
				b.ResetTimer()
				n := 0
				for n < b.N {
					batch := batchOf(n, min(size, b.N-n))
					n += len(batch)
					inFlight <- struct{}{}
					s.Send(batch, func(err error) {
						if err != nil {
							b.Error(err)
						}
						<-inFlight
					})
				}
				for range cap(inFlight) {
					inFlight <- struct{}{}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
			})
		})
	}
}

// BenchmarkSendReceive also receives and completes everything, over 100 sessions at a
// time that are accepted one after the other.
func BenchmarkSendReceive(b *testing.B) {
	benchModes(b, func(b *testing.B, broker *Broker) {
		topology(b, broker)
		s, err := broker.OpenSender("t", nil)
		if err != nil {
			b.Fatal(err)
		}
		var left sync.WaitGroup
		left.Add(b.N)
		stop := make(chan struct{})
		var workers sync.WaitGroup
		for range 100 {
			workers.Go(func() { drainSessions(broker, &left, stop) })
		}
		inFlight := make(chan struct{}, 16)
		b.ReportAllocs()
		b.ResetTimer()
		for n := 0; n < b.N; {
			batch := batchOf(n, min(100, b.N-n))
			n += len(batch)
			inFlight <- struct{}{}
			s.Send(batch, func(error) { <-inFlight })
		}
		left.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		b.StopTimer()
		close(stop)
		workers.Wait()
	})
}

func drainSessions(broker *Broker, left *sync.WaitGroup, stop chan struct{}) {
	for {
		got := make(chan Delivery, 100)
		opened := make(chan *Receiver, 1)
		cancel := broker.AcceptSession("t/Subscriptions/s", AcceptOptions{Timeout: time.Hour}, ReceiverOptions{
			Deliver: func(ds []Delivery) {
				for _, d := range ds {
					got <- d
				}
			},
		}, func(r *Receiver, _ error) { opened <- r })
		var r *Receiver
		select {
		case r = <-opened:
		case <-stop:
			cancel()
			if r = <-opened; r == nil {
				return
			}
		}
		r.AddCredit(100)
		idle := time.NewTimer(5 * time.Millisecond)
		for open := true; open; {
			select {
			case d := <-got:
				r.Settle(d.LockToken, Outcome{Kind: Complete}, func(error) { left.Done() })
				r.AddCredit(1)
			case <-idle.C:
				open = false
			}
		}
		r.Close()
	}
}

func topology(b *testing.B, broker *Broker) {
	b.Helper()
	if _, err := broker.CreateTopic(b.Context(), "t", TopicProperties{RequiresDuplicateDetection: true, MaxSizeMB: 1 << 20}); err != nil {
		b.Fatal(err)
	}
	if _, err := broker.CreateSubscription(b.Context(), "t", "s", SubscriptionProperties{RequiresSession: true}); err != nil {
		b.Fatal(err)
	}
}

// batchOf makes a batch of one of 20,000 sessions.
func batchOf(first, n int) []Message {
	session := fmt.Sprintf("session-%05d", first/10%20000)
	payload := make([]byte, 512*n)
	batch := make([]Message, n)
	for i := range batch {
		batch[i] = Message{Payload: payload[512*i : 512*(i+1) : 512*(i+1)], MessageID: fmt.Sprintf("00000000-0000-0000-0000-%012d", first+i), SessionID: session, HasSession: true}
	}
	return batch
}
