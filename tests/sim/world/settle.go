package world

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/lab/verify"
)

type busemuMessage = busemu.PeekedMessage

// patience bounds each wait after the faults ended.
const patience = 5 * time.Minute

// Settle stops the load, ends all faults, waits in virtual time until all events have arrived and
// the leases are balanced, or patience is over, and returns the run for verification. Events that
// did not arrive are violations.
func (w *World) Settle() *verify.Run {
	for _, l := range w.loads {
		l.Stop()
	}
	w.shops.close()
	w.Heal()
	w.Eventually(patience, w.shops.idle)
	began := time.Now()
	run := &verify.Run{Settled: &verify.Settled{Limit: w.leaseLimit()}}
	for range w.outboxes[1:] {
		run.Settled.Others = append(run.Settled.Others, &verify.Settled{Limit: w.leaseLimit()})
	}
	settled := append([]*verify.Settled{run.Settled}, run.Settled.Others...) // of each outbox
	// Stopped and crashed processes restart first.
	w.Eventually(patience, func() bool {
		return !slices.ContainsFunc(w.Processes(), func(name string) bool { _, ok := w.Running(name); return !ok })
	})
	from := time.Now()
	for i, o := range w.outboxes {
		w.watchLeases(o, from, settled[i])
	}
	w.Eventually(patience, w.allArrived)
	run.Settled.Arrived = time.Since(began)
	w.Eventually(patience, w.allHandled)
	run.Settled.Handled = time.Since(began)
	w.trace.Add("world", "HANDLED after %s", run.Settled.Handled)
	w.endParking()
	for i, o := range w.outboxes {
		w.Eventually(patience, func() bool { return w.balanced(o, settled[i]) })
		settled[i].Balanced = time.Since(began)
	}
	w.collect(run)
	w.trace.Add("world", "SETTLED after %s", time.Since(began))
	return run
}

// leaseLimit is the maximum time of a lease without a live owner: its expiry and a balancing cycle,
// plus 30 s for a restart and a failing store.
func (w *World) leaseLimit() time.Duration {
	expiry := w.topology.LeaseExpiry
	return expiry + expiry/4 + 30*time.Second
}

// watchLeases waits until every lease of an outbox has a live owner, and stores the time since from.
func (w *World) watchLeases(o outbox, from time.Time, s *verify.Settled) {
	if len(w.Kind(o.relays)) == 0 {
		return
	}
	w.Eventually(patience, func() bool {
		s.Owners = w.owners(o)
		return len(s.Owners) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(s.Owners)), func(owner string) bool { return !slices.Contains(w.instances(o), owner) })
	})
	s.Unowned = time.Since(from)
}

// owners maps each live lease of an outbox to its owner.
func (w *World) owners(o outbox) map[string]string {
	owners := map[string]string{}
	for _, l := range w.leases(o) {
		owners[l.ID] = ""
		if l.Owner != nil {
			owners[l.ID] = *l.Owner
		}
	}
	return owners
}

// instances returns the running relays of an outbox.
func (w *World) instances(o outbox) []string {
	var names []string
	for _, name := range w.Kind(o.relays) {
		if instance, ok := w.Running(name); ok {
			names = append(names, instance)
		}
	}
	return names
}

func (w *World) balanced(o outbox, s *verify.Settled) bool {
	s.Owners, s.Hosts = w.owners(o), w.instances(o)
	return len(w.Kind(o.relays)) == 0 || s.Unbalanced() == ""
}

// allArrived reports whether each stored event is accepted or parked, and each poison event parked.
// Events of automatically closed gates must still arrive.
func (w *World) allArrived() bool {
	if w.topology.Relays > 0 && w.drains() {
		return false
	}
	parked := w.parked()
	for id := range w.poisoned() {
		if !parked[id] {
			return false
		}
	}
	_, events := w.stored()
	if w.Accepted()+int64(len(parked)) < int64(len(events)) {
		return false
	}
	arrived := map[string]bool{}
	for _, m := range w.archived() {
		arrived[m.ID] = true
	}
	for _, e := range events {
		if !arrived[e.ID] && !parked[e.ID] {
			return false
		}
	}
	return true
}

// drains reports whether a gate is closed that opens without an operator.
func (w *World) drains() bool {
	return slices.ContainsFunc(w.outboxes, func(o outbox) bool { return slices.ContainsFunc(w.raw(o.parked), isOpening) })
}

// isOpening reports whether raw is a gate that opens without an operator.
func isOpening(raw []byte) bool {
	var gate struct {
		Type    string `json:"type"`
		Closing struct {
			Auto bool `json:"auto"`
		} `json:"closing"`
	}
	return json.Unmarshal(raw, &gate) == nil && gate.Type == "gate" && gate.Closing.Auto
}

// collect fills in the run for verification.
func (w *World) collect(run *verify.Run) {
	run.Acked, run.Unknown = map[string]int{}, map[string]int{}
	for _, l := range w.loads {
		l.mu.Lock()
		for id, n := range l.acked {
			run.Acked[id] += n
		}
		for id, n := range l.unknown {
			run.Unknown[id] += n
		}
		run.LostCreates += l.lost
		run.Other = append(run.Other, l.surprise...)
		l.mu.Unlock()
	}
	w.shops.mu.Lock()
	maps.Copy(run.Acked, w.shops.acked) // ids of orders and contacts do not overlap
	maps.Copy(run.Unknown, w.shops.unknown)
	run.LostCreates += w.shops.lost
	w.shops.mu.Unlock()
	run.Aggregates, run.Events = w.stored()
	if err := w.readEvents(); err != nil {
		w.harness("read the store: %v", err)
	}
	run.Poison = w.poisoned()
	w.ledger.mu.Lock()
	present := map[string]bool{}
	for i := range run.Events {
		e := &run.Events[i]
		present[e.ID] = true
		if seen, ok := w.ledger.events[e.ID]; ok {
			e.Feed, e.LSN, e.EPK = seen.Feed, seen.LSN, seen.EPK
		}
	}
	for id, e := range w.ledger.events {
		if !present[id] && !run.Poison[id] {
			e.Expired = true
			run.Events = append(run.Events, e)
		}
	}
	w.ledger.mu.Unlock()
	run.Messages, run.Parked = w.archived(), w.parked()
	w.received.mu.Lock()
	if w.topology.Consumers > 0 {
		run.Consumed, run.Handled = true, slices.Clone(w.received.handled)
	}
	run.Reported = slices.Clone(w.received.lost)
	run.Repeats, run.Warned = w.received.repeats, w.received.warned
	w.received.mu.Unlock()
	if w.topology.parks() {
		c := w.consumed()
		run.Consumed, run.Handled, run.Skipped, run.Once = true, c.messages(), c.skipped, true
	}
	w.cosmos.mu.Lock()
	run.Checkpoints, run.SetAside = slices.Clone(w.cosmos.writes), maps.Clone(w.cosmos.setAside)
	w.cosmos.mu.Unlock()
	run.Expires = w.topology.expires()
	run.Other = append(run.Other, w.ordersUnlike(run.Events)...)
	w.mu.Lock()
	run.Other = append(run.Other, w.faults...)
	w.mu.Unlock()
}
