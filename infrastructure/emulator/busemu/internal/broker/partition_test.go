package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var partitioned = Queue{Partitioned: true}

// withKey is a message with a partition key.
func withKey(key, s string) Message {
	m := msg(s)
	m.PartitionKey = key
	return m
}

// keys returns n keys of different partitions, in the order of the partitions.
func (r *rig) keys(path string, n int) (keys []string) {
	r.t.Helper()
	in, err := r.inletAt(path)
	if err != nil {
		r.t.Fatal(err)
	}
	byPartition := make(map[int]string)
	for i := 0; len(byPartition) < in.partitions; i++ {
		key := fmt.Sprint("key", i)
		byPartition[in.partitionOfKey(key)] = key
	}
	for p := range n {
		keys = append(keys, byPartition[p])
	}
	return keys
}

func (r *rig) peeked(path string) []Delivery {
	r.t.Helper()
	synctest.Wait()
	ds, err := r.Peek(path, PeekOptions{Count: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	return ds
}

func partitionsOf(ds []Delivery) (ps []int) {
	for _, d := range ds {
		ps = append(ps, int(d.SequenceNumber>>48))
	}
	return ps
}

// TestPartitions: messages with one key are in one partition, which numbers them.
func TestPartitions(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", partitioned)
		used := make(map[int64]string)
		last := make(map[int64]int64)
		for i := range 100 {
			key := fmt.Sprint(i)
			r.send("q", withKey(key, key+" 1"), withKey(key, key+" 2"))
			r.send("q", withKey(key, key+" 3"))
			used[int64(i)] = key
		}
		for _, d := range r.peeked("q") {
			p := d.SequenceNumber >> 48
			if n := d.SequenceNumber & (1<<48 - 1); n != last[p]+1 {
				t.Fatalf("number %d comes after %d in partition %d", n, last[p], p)
			}
			last[p]++
			if key := int64(slices.Index(r.keys("q", 16), d.PartitionKey)); key >= 0 && key != p {
				t.Errorf("%s is in partition %d and %d", d.PartitionKey, p, key)
			}
		}
		if len(last) != 16 {
			t.Errorf("100 keys are spread over %d partitions: %v", len(last), last)
		}
		place := make(map[string]int)
		c := r.receive("q", 1000)
		got := c.take()
		for _, d := range got {
			key := d.PartitionKey
			if place[key]++; string(d.Payload) != fmt.Sprint(key, " ", place[key]) {
				t.Errorf("%s arrived as number %d of its key", d.Payload, place[key])
			}
			c.settle(d, Complete)
		}
		if len(got) != 300 {
			t.Errorf("%d messages arrived", len(got))
		}
		r.wantPeek("q")
	})
}

// TestPartitionsTakeTurns: batches without a key go to the partitions in turn, and partitions
// with messages are served in turn.
func TestPartitionsTakeTurns(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.partitions = 4
		r.Close()
		r.open(r.fs)
		r.queue("q", partitioned)
		for i := range 8 {
			r.send("q", msg(fmt.Sprint(i, "a")), msg(fmt.Sprint(i, "b")))
		}
		if got := partitionsOf(r.peeked("q")); !slices.Equal(got, []int{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}) {
			t.Errorf("the messages are in the partitions %v", got)
		}
		key := r.keys("q", 3)[2]
		for i := range 4 {
			r.send("q", withKey(key, fmt.Sprint("more ", i)))
		}
		c := r.receive("q", 6)
		first := c.take()
		c.AddCredit(14)
		if got := partitionsOf(append(first, c.take()...)); !slices.Equal(got, []int{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 2, 2, 2, 2}) {
			t.Errorf("served from %v", got)
		}
	})
}

// TestMessagesKeepTheirPartition: copies, dead letters and due messages stay in the partition
// of their message.
func TestMessagesKeepTheirPartition(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{Partitioned: true})
		r.subscription("t", "s", Subscription{})
		r.subscription("t", "sessions", Subscription{RequiresSession: true})
		const s = "t/Subscriptions/s"
		keys := r.keys("t", 16)
		want := []int{}
		for p, key := range keys {
			m := withKey(key, key)
			if p%2 == 0 {
				m.ScheduledAt = r.Now().Add(time.Minute)
			}
			r.send("t", m)
			want = append(want, p)
		}
		time.Sleep(time.Minute)
		for _, path := range []string{s, "t/Subscriptions/sessions/$deadletterqueue"} { // none has a session
			if got := partitionsOf(r.peeked(path)); !slices.Equal(got, want) {
				t.Errorf("%s has messages of the partitions %v", path, got)
			}
		}
		c := r.receive(s, 16)
		for _, d := range c.take() {
			c.settle(d, DeadLetter)
		}
		dead := r.peeked(s + "/$deadletterqueue")
		if got := partitionsOf(dead); !slices.Equal(got, want) {
			t.Errorf("dead letters of the partitions %v", got)
		}
		for p, d := range dead {
			if d.PartitionKey != keys[p] || d.EnqueuedSequenceNumber>>48 != int64(p) {
				t.Errorf("%+v is in partition %d, which is that of %s", d, p, keys[p])
			}
		}
	})
}

// TestOperationsFindMessagesInPartitions: deferred and scheduled messages are found by number.
func TestOperationsFindMessagesInPartitions(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", partitioned)
		keys := r.keys("q", 16)
		for _, key := range keys {
			later := withKey(key, "scheduled")
			later.ScheduledAt = r.Now().Add(time.Hour)
			r.send("q", withKey(key, key), later)
		}
		c := r.receive("q", 16)
		for _, d := range c.take() {
			c.settle(d, Defer)
		}
		c.Close()
		if r.fs != nil {
			r.crash()
		}
		for p, key := range keys {
			first := int64(p)<<48 + 1
			for _, wrong := range []int64{first + 5, int64(16)<<48 + 1, -first, 1 << 62} {
				if err := r.cancel("q", wrong); !errors.Is(err, MessageNotFound) {
					t.Errorf("cancel %x: %v", wrong, err)
				}
			}
			if err := r.cancel("q", first+1); err != nil {
				t.Errorf("cancel in partition %d: %v", p, err)
			}
			done := make(chan error, 1)
			r.ReceiveBySequence("q", SequenceOptions{Sequences: []int64{first}, Mode: ReceiveAndDelete}, func(ds []Delivery, err error) {
				if err == nil && string(ds[0].Payload) != key {
					err = fmt.Errorf("got %s", ds[0].Payload)
				}
				done <- err
			})
			if err := <-done; err != nil {
				t.Errorf("receive in partition %d: %v", p, err)
			}
		}
		r.wantPeek("q")
	})
}

func (r *rig) cancel(path string, sequence int64) error {
	done := make(chan error, 1)
	r.CancelScheduled(path, []int64{sequence}, func(err error) { done <- err })
	return <-done
}

// TestBrowsePartitions: a browser gets later messages of a partition that it has read.
func TestBrowsePartitions(t *testing.T) {
	modes(t, func(_ *testing.T, r *rig) {
		r.queue("q", partitioned)
		keys := r.keys("q", 3)
		r.send("q", withKey(keys[2], "a"))
		b := r.browse("q")
		b.SetCredit(0, 10)
		b.want("a")
		r.send("q", withKey(keys[0], "b"))
		r.send("q", withKey(keys[2], "c"))
		r.send("q", withKey(keys[0], "d"))
		b.want("b", "c", "d")
	})
}

// TestForwardToPartitions: the target entity assigns forwarded messages to partitions by their
// keys.
func TestForwardToPartitions(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("to", partitioned)
		r.queue("plain", Queue{})
		r.queue("q", Queue{ForwardTo: "to"})
		keys := r.keys("to", 16)
		for _, key := range slices.Backward(keys) {
			r.send("q", withKey(key, key))
		}
		r.wantPeek("to", keys...)
		r.queue("back", Queue{Partitioned: true, ForwardTo: "plain"})
		for _, key := range keys {
			r.send("back", withKey(key, key))
		}
		if got := r.peeked("plain"); !slices.Equal(payloads(got), keys) || got[15].SequenceNumber != 16 {
			t.Errorf("forwarded to an entity that is not partitioned: %q", payloads(got))
		}
	})
}
