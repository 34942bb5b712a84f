package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/sim/world"
)

// steady is a load of single events at a constant rate, for measuring the latency of each event to
// the broker.
type steady struct {
	s       *scenario
	data    *azcosmos.ContainerClient
	keys    []string
	every   int                  // one of every so many events is of the favourite key, see run
	last    map[string]int       // sequence of each key
	written map[string]time.Time // by event id
}

func (s *scenario) newSteady(keys ...string) *steady {
	s.Helper()
	return &steady{s: s, data: s.containers(world.Data)[0], keys: keys, every: 10, last: map[string]int{}, written: map[string]time.Time{}}
}

// contacts returns n keys.
func contacts(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("contact-", i)
	}
	return keys
}

// write stores the next event of a key, as raw if that is not empty.
func (l *steady) write(key, raw string) {
	l.s.Helper()
	l.last[key]++
	n := l.last[key]
	d := event(key, n, -1)
	if raw != "" {
		d.raw = raw
	}
	l.s.commit(l.data, key, contact(key, n, n), d)
	l.written[eventID(key, n)] = time.Now()
}

// run writes events of random keys, evenly over length. One of every l.every is of favourite, if that
// is not empty.
func (l *steady) run(length time.Duration, events int, favourite string) {
	l.s.Helper()
	for i := range events {
		key := l.keys[l.s.pick(len(l.keys))]
		if favourite != "" && i%l.every == 0 {
			key = favourite
		}
		l.write(key, "")
		l.s.Sleep(length / time.Duration(events))
	}
}

// history replaces the stored events in run by the written ones, because bad documents cannot be read
// from the store.
func (l *steady) history(run *verify.Run) {
	run.Acked, run.Aggregates, run.Events = nil, nil, nil
	for key, last := range l.last {
		run.Aggregates = append(run.Aggregates, verify.Aggregate{ID: key, Version: int64(last), Sequence: int64(last)})
		for n := 1; n <= last; n++ {
			run.Events = append(run.Events, verify.Event{ID: eventID(key, n), Key: key, Action: "ContactNameUpdatedEvent", Version: int64(n), Sequence: int64(n)})
		}
	}
}

// arrivals returns the time at which the broker accepted each event.
func (s *scenario) arrivals() map[string]time.Time {
	s.Helper()
	messages, err := s.Bus().Peek(world.Topic+"/Subscriptions/"+world.Archive, 1<<20)
	if err != nil {
		s.Fatal(err)
	}
	at := make(map[string]time.Time, len(messages))
	for i := range messages {
		if m := &messages[i]; at[m.ID].IsZero() || m.EnqueuedAt.Before(at[m.ID]) {
			at[strings.Clone(m.ID)] = m.EnqueuedAt
		}
	}
	return at
}

// latencies returns the sorted latencies of events written between from and to, except those of one
// key. missing counts the events that the broker has not accepted yet.
func (l *steady) latencies(from, to time.Time, except string) (sorted []time.Duration, missing int) {
	l.s.Helper()
	at := l.s.arrivals()
	for id, written := range l.written {
		if strings.HasPrefix(id, except+".") || written.Before(from) || !written.Before(to) {
			continue
		}
		arrived, ok := at[id]
		if !ok {
			missing++
			arrived = time.Now()
		}
		sorted = append(sorted, arrived.Sub(written))
	}
	slices.Sort(sorted)
	return sorted, missing
}

// quantile returns a quantile of sorted durations; 0 if there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// parked lists the ids of the parked events without the network.
func (s *scenario) parked() []string {
	s.Helper()
	raw, err := s.Cosmos().Items(world.Database, world.Parked)
	if err != nil {
		s.Fatal(err)
	}
	var ids []string
	for _, r := range raw {
		if d, _ := verify.DecodeDocument(r); d.Kind == verify.KindParked {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// refuseParking makes the container of parked events refuse all writes for key, or all writes if key
// is empty, like a full logical partition.
func (s *scenario) refuseParking(key string) (end func()) {
	return s.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault {
		if c.Container != world.Parked || !writes(c) || !strings.Contains(partitionKey(c)+string(c.Body), key) {
			return nil
		}
		s.struck.Add(1)
		return &cosmosemu.Fault{Status: http.StatusForbidden, SubStatus: 1014, Message: "Partition key reached maximum size of 20 GB."}
	})
}

// partitionKey returns the partition key of a call; "" if it has none.
func partitionKey(c *cosmosemu.Call) string {
	var key []string
	if json.Unmarshal([]byte(c.Header.Get("x-ms-documentdb-partitionkey")), &key) != nil || len(key) != 1 {
		return ""
	}
	return key[0]
}

// writes reports whether a call is a write.
func writes(c *cosmosemu.Call) bool {
	switch c.Operation {
	case cosmosemu.OpCreateItem, cosmosemu.OpReplaceItem, cosmosemu.OpUpsertItem, cosmosemu.OpDeleteItem, cosmosemu.OpPatchItem, cosmosemu.OpBatch:
		return true
	default:
		return false
	}
}
