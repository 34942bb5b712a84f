package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestPartitionsSurviveCrash: no number is used twice, and an entity keeps its number of
// partitions.
func TestPartitionsSurviveCrash(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.queue("q", partitioned)
		keys := r.keys("q", 16)
		for _, key := range keys {
			r.send("q", withKey(key, key))
		}
		c := r.receive("q", 16)
		for _, d := range c.take() {
			c.settle(d, Complete)
		}
		r.partitions = 3
		r.crash()
		for p, key := range keys {
			r.send("q", withKey(key, key))
			if got := r.peeked("q"); got[p].SequenceNumber != int64(p)<<48+2 {
				t.Errorf("partition %d goes on with %x", p, got[p].SequenceNumber)
			}
		}
		if err := r.DeleteQueue(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		if n := r.records(kindMessage) + r.records(kindSequence); n != 0 {
			t.Errorf("%d records are left of a queue that was deleted", n)
		}
		r.queue("q", partitioned)
		in, err := r.inletAt("q")
		if err != nil || in.partitions != 3 {
			t.Errorf("a new queue has %d partitions, %v", in.partitions, err)
		}
	})
}

// TestStoreWithOnePartitionKeepsIt: a partitioned entity from a store with only one partition
// keeps one.
func TestStoreWithOnePartitionKeepsIt(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.partitions = 1
		r.crash()
		r.queue("q", Queue{Partitioned: true, RequiresDuplicateDetection: true})
		r.send("q", withKey("x", "a"))
		r.partitions = 0
		l := &loader{db: r.store.db}
		if err := l.each(kindEntity, func(key, value []byte) error { // in the old form
			var e map[string]json.RawMessage
			if err := json.Unmarshal(value, &e); err != nil {
				return err
			}
			delete(e, "Partitions")
			value, err := json.Marshal(e)
			if err != nil {
				return err
			}
			return r.store.db.Set(slices.Clone(key), value, nil)
		}); err != nil {
			t.Fatal(err)
		}
		r.crash()
		r.send("q", withKey("x", "a"))
		r.send("q", withKey("y", "b"))
		if got := r.peeked("q"); !slices.Equal(payloads(got), []string{"a", "b"}) || got[1].SequenceNumber != 2 {
			t.Errorf("it holds %q, the last with number %d", payloads(got), got[1].SequenceNumber)
		}
	})
}

// TestDamagedPartitions: a store with impossible numbers of partitions is refused.
func TestDamagedPartitions(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.queue("q", partitioned)
		in, err := r.inletAt("q")
		if err != nil {
			t.Fatal(err)
		}
		if !in.rest.wasGiven(0) || in.rest.wasGiven(1) || in.rest.wasGiven(16<<48) || in.rest.wasGiven(-1) {
			t.Error("a number is taken that was not given out")
		}
		l := &loader{c: r.catalog, inlets: make(map[uint32]*inlet), holders: map[uint32]*holder{in.rest.id: in.rest}}
		if err := l.sequence(holderKey(nil, kindSequence, in.rest.id), make([]byte, 8)); err == nil {
			t.Error("one counter is taken for sixteen")
		}
		if err := l.entity(holderKey(nil, kindEntity, 1), []byte(`{"ID":1,"Name":"x","Queue":{},"Partitions":1000}`)); err == nil {
			t.Error("an entity of 1000 partitions is loaded")
		}
	})
}

// TestPartitionsOfPremium: a namespace of the Premium tier is partitioned as a whole or not at
// all.
func TestPartitionsOfPremium(t *testing.T) {
	for partitions, only := range map[int]bool{0: false, 1: false, 4: true} {
		b, err := Open(&Options{Premium: true, Partitions: partitions})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []bool{false, true} {
			_, qErr := b.CreateQueue(t.Context(), Queue{Name: fmt.Sprint("q", p), Partitioned: p})
			_, tErr := b.CreateTopic(t.Context(), Topic{Name: fmt.Sprint("t", p), Partitioned: p})
			for _, err := range []error{qErr, tErr} {
				if p != only && !errors.Is(err, ArgumentError) || p == only && err != nil {
					t.Errorf("namespace of %d, partitioned=%t: %v", partitions, p, err)
				}
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
