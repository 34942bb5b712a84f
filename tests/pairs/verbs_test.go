package pairs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
	"feedbox/tests/testkit"
)

// verbs runs the operator commands on a healthy service and sends all events of key again.
func (w *world) verbs(t *testing.T, key string) {
	t.Helper()
	var leases []struct{ Owner, Health string }
	testkit.Eventually(t, time.Minute, "an owner of each lease", func() bool {
		w.feedbox(t, &leases, "leases", "ls")
		owned := 0
		for _, l := range leases {
			if l.Owner == w.relays[0].Name {
				owned++
			}
		}
		return owned > 0 && owned == len(leases)
	})
	var lag struct {
		Behind int64
		Ranges []struct {
			Known                          bool
			Checkpoint, Delivered, Handled int64
		}
	}
	testkit.Eventually(t, time.Minute, "no lag and a checkpoint after all events", func() bool { // replay ends at the checkpoint
		w.feedbox(t, &lag, "lag")
		handled, stored := int64(0), true
		for _, r := range lag.Ranges {
			handled, stored = handled+r.Handled, stored && r.Checkpoint == r.Delivered
		}
		return lag.Behind == 0 && stored && handled >= int64(w.ledger.Count())
	})
	if len(lag.Ranges) != len(leases) {
		t.Errorf("the lag of %d ranges, of %d leases", len(lag.Ranges), len(leases))
	}
	type finding struct{ Check, Status, Detail, Next string }
	for _, process := range []string{"relay", "api"} {
		var findings []finding
		sound := func(f finding) bool { return f.Status == "ok" || f.Check == "rights" } // these tests have one role, which owns the database
		for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {            // a relay that stands still for a second is a silent owner
			findings = nil
			w.feedbox(t, &findings, "doctor", "--process", process, "--servicebus-admin", w.broker.management)
			if len(findings) == 0 {
				t.Errorf("doctor of %s found nothing", process)
			}
			if findings = slices.DeleteFunc(findings, sound); len(findings) == 0 || time.Now().After(limit) {
				break
			}
		}
		if len(findings) > 0 {
			t.Errorf("doctor of %s: %+v", process, findings)
		}
	}
	_, before := w.ledger.Messages()
	var replay struct {
		Events int
		Done   bool
	}
	if w.feedbox(t, &replay, "replay", "--key", key, "--yes"); replay.Events != 4 || !replay.Done {
		t.Errorf("replay of a key: %+v", replay)
	}
	if w.broker.repeats {
		testkit.Eventually(t, time.Minute, "the repeats at the inbox", func() bool { _, now := w.ledger.Messages(); return now >= before+4 })
	}
	if w.feedbox(t, &replay, "replay", "--from", "1h", "--yes"); replay.Events != w.ledger.Count() || !replay.Done {
		t.Errorf("replay of all %d events: %+v", w.ledger.Count(), replay)
	}
}

// parked stores two keys with an event that cannot be sent, so that they are parked. One
// event is corrected and sent from the store, the other is skipped.
func (w *world) parked(t *testing.T) {
	t.Helper()
	document := func(key string, n int, action string) string {
		return fmt.Sprintf(`{"id":"%[1]s-%[2]d","partitionKey":%[1]q,"type":"domainEvent","data":{"contactId":%[1]q,%[3]s"id":"%[1]s-%[2]d","createdAt":"2026-01-31T08:00:00Z","aggregateVersion":%[2]d,"sequence":%[2]d,"schemaVersion":1}}`,
			key, n, action)
	}
	const mended, left, updated = "mended", "left-out", `"action":"ContactNameUpdatedEvent",`
	for _, key := range []string{mended, left} {
		w.store.add(t, key, key+"-1", document(key, 1, updated))
		w.store.add(t, key, key+"-2", document(key, 2, ""))
		w.store.add(t, key, key+"-3", document(key, 3, updated))
		w.arrived(t, key, "ContactNameUpdatedEvent")
	}
	type gate struct {
		Key    string
		Events int
		Event  string
		Reason string
	}
	var gates []gate
	testkit.Eventually(t, time.Minute, "two parked keys with two events each", func() bool {
		w.feedbox(t, &gates, "parked", "ls")
		return len(gates) == 2 && gates[0].Events == 2 && gates[1].Events == 2
	})
	for _, g := range gates {
		if g.Event != g.Key+"-2" || g.Reason == "" {
			t.Errorf("parked: %+v", g)
		}
	}
	var shown struct {
		Line []struct{ ID string }
	}
	if w.feedbox(t, &shown, "parked", "show", left); len(shown.Line) != 2 || shown.Line[1].ID != left+"-3" {
		t.Errorf("the line of %s: %+v", left, shown)
	}
	w.mend(t, mended, mended+"-2", document(mended, 2, updated))
	w.feedbox(t, &gate{}, "parked", "retry", mended, "--from-store")
	w.feedbox(t, &gate{}, "parked", "skip", left, "--event", left+"-2", "--note", "a test", "--yes", "--wait", "1m")
	testkit.Eventually(t, time.Minute, "no parked key", func() bool {
		w.feedbox(t, &gates, "parked", "ls")
		return len(gates) == 0
	})
	w.arrived(t, mended, "ContactNameUpdatedEvent", "ContactNameUpdatedEvent", "ContactNameUpdatedEvent")
	w.arrived(t, left, "ContactNameUpdatedEvent", "ContactNameUpdatedEvent")
}

// mend corrects an event as the operations page does.
func (w *world) mend(t *testing.T, key, id, document string) {
	t.Helper()
	cfg, err := config.LoadRelay(w.env)
	must(t, err)
	o, err := wiring.Operator(cfg, wiring.Params{Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() { must(t, o.Close(context.Background())) }()
	found, err := o.ReadEditable(t.Context(), key, id)
	must(t, err)
	if found.Trouble == "" {
		t.Errorf("event %s of %s could be sent", id, key)
	}
	must(t, o.ReplaceEvent(t.Context(), key, id, []byte(document), found.Version))
}
