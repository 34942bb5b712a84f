package cosmosinbox_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// newContainer returns a container of an emulated account.
func newContainer(t *testing.T, options ...*cosmosemu.Options) (*azcosmos.ContainerClient, *cosmosemu.Server) {
	t.Helper()
	emulator := cosmosemu.StartT(t, options...)
	if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "inbox", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	container, err := emulator.Client().NewContainer("contacts", "inbox")
	if err != nil {
		t.Fatal(err)
	}
	return container, emulator
}

func open(t *testing.T, c *azcosmos.ContainerClient, consumer string, opts *cosmosinbox.Options) *cosmosinbox.Inbox {
	t.Helper()
	b, err := cosmosinbox.New(c, consumer, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func record(t *testing.T, b *cosmosinbox.Inbox, key string, sequence int64) {
	t.Helper()
	if err := b.Record(t.Context(), key, mark(sequence)); err != nil {
		t.Fatal(err)
	}
}

func mark(sequence int64) consumer.Mark {
	return consumer.Mark{Sequence: sequence, AggregateVersion: sequence + 10, EventID: fmt.Sprint("e", sequence)}
}

func want(t *testing.T, b *cosmosinbox.Inbox, key string, m consumer.Mark) {
	t.Helper()
	got, err := b.Last(t.Context(), key)
	got.Recent = ""
	if err != nil || got != m {
		t.Errorf("mark of %s is %+v, %v; want %+v", key, got, err, m)
	}
}

// The service answers 404/1013 for some seconds after a container was created. That does not mean
// that an event is new.
func TestInboxOfAContainerThatIsBeingCreatedFails(t *testing.T) {
	emulator := cosmosemu.StartT(t, &cosmosemu.Options{CreationDelay: time.Hour})
	if err := emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "inbox", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	emulator.Control(cosmosemu.OpAny, func(*cosmosemu.Call) *cosmosemu.Fault {
		requests.Add(1)
		return nil
	})
	container, err := emulator.Client().NewContainer("contacts", "inbox")
	if err != nil {
		t.Fatal(err)
	}
	inbox := open(t, container, "mail", &cosmosinbox.Options{Timeout: 3 * time.Second})
	if m, err := inbox.Last(t.Context(), "ann"); err == nil {
		t.Errorf("the mark is %+v, want an error", m)
	}
	if err := inbox.Record(t.Context(), "ann", mark(1)); err == nil {
		t.Error("recorded in a container that is being created")
	}
	if n := requests.Load(); n > 20 {
		t.Errorf("%d requests, want no busy loop", n)
	}
	emulator.Advance(time.Hour)
	record(t, inbox, "ann", 1)
	want(t, inbox, "ann", mark(1))
}

func TestProcessesShareMarks(t *testing.T) {
	c, _ := newContainer(t)
	first, second, other := open(t, c, "mail", nil), open(t, c, "mail", nil), open(t, c, "audit", nil)
	want(t, first, "a", consumer.Mark{})
	record(t, first, "a", 1)
	record(t, first, "a", 2)
	record(t, first, "b", 5)
	want(t, second, "a", mark(2))
	want(t, second, "b", mark(5))
	want(t, other, "a", consumer.Mark{})
}

// The next owner of a key sees the mark of the one before, although replicas lag by an hour.
func TestMarkOfAnotherProcessIsSeenAtOnce(t *testing.T) {
	c, _ := newContainer(t, &cosmosemu.Options{StaleReads: time.Hour, Seed: 1})
	first, second := open(t, c, "mail", nil), open(t, c, "mail", nil)
	for sequence := int64(1); sequence <= 40; sequence += 2 {
		record(t, first, "a", sequence)
		want(t, second, "a", mark(sequence))
		record(t, second, "a", sequence+1)
		want(t, first, "a", mark(sequence+1))
	}
}

func TestMarkNeverMovesBack(t *testing.T) {
	c, _ := newContainer(t)
	late, current := open(t, c, "mail", nil), open(t, c, "mail", nil)
	record(t, late, "a", 3)
	record(t, current, "a", 4)
	record(t, current, "a", 5)
	record(t, late, "a", 4) // it lost its session, and has cached the ETag of 3
	want(t, late, "a", mark(5))
	record(t, late, "a", 6)
	want(t, current, "a", mark(6))
	record(t, current, "a", 6)
	want(t, current, "a", mark(6))
}

func TestConcurrentRecords(t *testing.T) {
	c, _ := newContainer(t)
	var all sync.WaitGroup
	for range 4 {
		b := open(t, c, "mail", nil)
		all.Go(func() {
			for n := int64(1); n <= 20; n++ {
				if err := b.Record(t.Context(), "a", mark(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want(t, open(t, c, "mail", nil), "a", mark(20))
}

func TestMarksExpire(t *testing.T) {
	c, emulator := newContainer(t)
	b := open(t, c, "mail", &cosmosinbox.Options{TTL: time.Minute})
	record(t, b, "a", 1)
	emulator.Advance(2 * time.Minute)
	record(t, b, "a", 2) // the cached ETag is that of an expired document
	want(t, b, "a", mark(2))
	emulator.Advance(2 * time.Minute)
	want(t, b, "a", consumer.Mark{})
}
