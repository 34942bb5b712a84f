package broker

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
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
				start := processorTime()
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
				report(b, start)
			})
		})
	}
}

// BenchmarkSendReceive also receives and completes all messages, of 100 sessions at a time.
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
		start := processorTime()
		for n := 0; n < b.N; {
			batch := batchOf(n, min(100, b.N-n))
			n += len(batch)
			inFlight <- struct{}{}
			s.Send(batch, func(error) { <-inFlight })
		}
		left.Wait()
		report(b, start)
		b.StopTimer()
		close(stop)
		workers.Wait()
	})
}

// report adds messages a second, and the processor time of a message in the whole process,
// because the machine may be busy.
func report(b *testing.B, start time.Duration) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric(float64(processorTime()-start)/float64(b.N), "cpu-ns/msg")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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

func topology(b testing.TB, broker *Broker) {
	b.Helper()
	if _, err := broker.CreateTopic(b.Context(), Topic{Name: "t", RequiresDuplicateDetection: true, MaxSizeMB: 1 << 20}); err != nil {
		b.Fatal(err)
	}
	if _, err := broker.CreateSubscription(b.Context(), "t", Subscription{Name: "s", RequiresSession: true}); err != nil {
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

// BenchmarkOpen opens a store with a backlog of 100,000 messages.
func BenchmarkOpen(b *testing.B) {
	o := &Options{Dir: b.TempDir()}
	broker, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	topology(b, broker)
	fillTopic(b, broker, 100000)
	if err := broker.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		again, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := again.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func fillTopic(tb testing.TB, broker *Broker, n int) {
	tb.Helper()
	var all sync.WaitGroup
	for i := 0; i < n; i += 100 {
		all.Add(1)
		broker.Send("t", batchOf(i, 100), func(err error) {
			if err != nil {
				tb.Error(err)
			}
			all.Done()
		})
	}
	all.Wait()
}

// The memory of a waiting message without its payload and strings stays below 300 bytes,
// including sessions and the duplicate history.
func TestMemoryOfAMessage(t *testing.T) {
	const n = 100000
	broker, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	}()
	topology(t, broker)
	payload := make([]byte, 512)
	ids := make([]string, n)
	sessions := make([]string, 20000)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	for i := range sessions {
		sessions[i] = fmt.Sprint(i)
	}
	before := inUse()
	batch := make([]Message, 100)
	for i := 0; i < n; i += len(batch) {
		for j := range batch {
			batch[j] = Message{Payload: payload, MessageID: ids[i+j], SessionID: sessions[(i+j)/10%len(sessions)], HasSession: true}
		}
		broker.Send("t", batch, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	each := (inUse() - before) / n
	t.Logf("%d bytes a message", each)
	if each > 320 {
		t.Errorf("%d bytes a message", each)
	}
	runtime.KeepAlive(ids)
}

func inUse() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
