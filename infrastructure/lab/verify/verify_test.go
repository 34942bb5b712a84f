package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func event(id, key, action string, version, sequence int64) Event {
	return Event{ID: id, Key: key, Action: action, Version: version, Sequence: sequence}
}

func goodRun() Run {
	return Run{
		Acked:      map[string]int{"a": 2, "b": 1},
		Aggregates: []Aggregate{{"a", 2, 3}, {"b", 1, 1}},
		Events: []Event{
			event("e1", "a", "Created", 1, 1), event("e2", "a", "Name", 2, 2), event("e3", "a", "Email", 2, 3), event("e4", "b", "Created", 1, 1),
		},
		Messages: []Message{
			{"e1", "a", "Created", 1, 1}, {"e4", "b", "Created", 1, 1}, {"e2", "a", "Name", 2, 2}, {"e3", "a", "Email", 2, 3},
		},
	}
}

func TestVerifyAcceptsAGoodRun(t *testing.T) {
	if got := goodRun().Verify(); len(got) != 0 {
		t.Fatalf("violations in a good run: %q", got)
	}
}

// Each breach of a promise must be found, by its name.
func TestVerifyFindsEachBreach(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		do   func(*Run)
	}{
		"event lost":            {"I2 event e2", func(r *Run) { r.Messages = slices.Delete(r.Messages, 2, 3) }},
		"acked change lost":     {"I2 aggregate a", func(r *Run) { r.Acked["a"] = 3 }},
		"acked contact lost":    {"I2 aggregate c", func(r *Run) { r.Acked["c"] = 1 }},
		"unacked change stored": {"I2 aggregate a", func(r *Run) { r.Acked["a"] = 1 }},
		"contact of no client":  {"I2 1 aggregates are stored", func(r *Run) { delete(r.Acked, "b") }},
		"event without contact": {"I1 key x", func(r *Run) { r.Events = append(r.Events, event("e9", "x", "Created", 1, 1)) }},
		"event not stored":      {"I1 aggregate a", func(r *Run) { r.Events = slices.Delete(r.Events, 1, 2) }},
		"version without event": {"I1 aggregate a: no event of version 2", func(r *Run) {
			r.Events[1].Version, r.Events[2].Version = 1, 1
		}},
		"order": {"I3 session a", func(r *Run) { r.Messages[2], r.Messages[3] = r.Messages[3], r.Messages[2] }},
		"twice": {"I4 message e1", func(r *Run) { r.Messages = append(r.Messages, r.Messages[0]) }},
		"ghost": {"I5 message e7", func(r *Run) { r.Messages = append(r.Messages, Message{"e7", "b", "Name", 2, 2}) }},
		"id of two events, one lost": {"I10 id e4 is that of two events", func(r *Run) {
			r.Aggregates = append(r.Aggregates, Aggregate{"c", 1, 1})
			r.Acked["c"] = 1
			r.Events = slices.Insert(r.Events, 0, event("e4", "c", "Created", 1, 1))
		}},
		"a loss beside a reported one": {"I2 event e3", func(r *Run) { // e2 was reported
			r.Expires, r.Messages, r.Events[1].Expired, r.Events[2].Expired = true, r.Messages[:2], true, true
			r.Reported = []Loss{{Key: "a", First: 2, Last: 2}}
		}},
		"handlers that received nothing": {"I2 consumer: message e1", func(r *Run) { r.Consumed = true }},
		"wrong session":                  {"I5 message e4", func(r *Run) { r.Messages[1].Session = "z" }},
	} {
		t.Run(name, func(t *testing.T) {
			run := goodRun()
			c.do(&run)
			got := run.Verify()
			if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, c.want) }) {
				t.Fatalf("violations %q, want one starting with %q", got, c.want)
			}
		})
	}
}

// Many breaches of one promise must not hide those of another, nor end the count.
func TestReportCountsAllBreachesOfEachPromise(t *testing.T) {
	const many = 101
	run := goodRun()
	for n := range many {
		run.Messages = append(run.Messages, Message{fmt.Sprint("ghost", n), "a", "Name", int64(n + 3), int64(n + 4)})
		run.Events = append(run.Events, event(fmt.Sprint("lost", n), fmt.Sprint("key", n), "Created", 1, 1))
	}
	run.Messages = append(run.Messages, run.Messages[0])
	run.Other = []string{"I6 of the test", "a failure of the test"}
	report := run.Report()
	want := map[string]int{"I1": many, "I2": many, "I4": 1, "I5": many, "I6": 1, "": 1}
	if !maps.Equal(report.Broken, want) {
		t.Errorf("counted %v, want %v", report.Broken, want)
	}
	lines := strings.Join(run.Verify(), "\n")
	if n := strings.Count(lines, "\n") + 1; n != 3*(maxExamples+1)+3 {
		t.Errorf("%d lines, want %d examples and a line with the number of the others:\n%s", n, maxExamples, lines)
	}
	for _, line := range []string{"\n... and 81 more I5", "\nI4 message e1", "\na failure of the test"} {
		if !strings.Contains(lines, line) {
			t.Errorf("%q is missing:\n%s", line, lines)
		}
	}
	ghosts := report.Only(func(id string) bool { return id == "I5" })
	if len(ghosts.Broken) != 1 || ghosts.Broken["I5"] != many || len(ghosts.Examples) != maxExamples {
		t.Errorf("of one promise: %v with %d examples", ghosts.Broken, len(ghosts.Examples))
	}
}

func TestVerifyAcceptsParkedEventsAndUnknownOutcomes(t *testing.T) {
	run := goodRun()
	run.Messages = slices.Delete(run.Messages, 3, 4)
	run.Parked = map[string]bool{"e3": true}
	run.Acked["a"], run.Unknown = 1, map[string]int{"a": 1}
	delete(run.Acked, "b")
	run.LostCreates = 1
	if got := run.Verify(); len(got) != 0 {
		t.Fatalf("violations: %q", got)
	}
}

// An operator let the consumer skip e2. A message is handled once if the effect is stored with the mark.
func TestVerifyChecksEffectsOfHandlers(t *testing.T) {
	m := goodRun().Messages
	e1, e4, e2, e3 := m[0], m[1], m[2], m[3]
	for name, c := range map[string]struct {
		want    string // "": no breach
		once    bool
		handled []Message
	}{
		"skipped":              {"", true, []Message{e1, e4, e3}},
		"skipped, but handled": {"", true, []Message{e1, e4, e2, e3}},
		"redelivered":          {"", false, []Message{e1, e4, e3, e1, e3}},
		"twice":                {"I4 consumer: message e3", true, []Message{e1, e4, e3, e3}},
		"lost":                 {"I2 consumer: message e3", true, []Message{e1, e4}},
		"overtaken":            {"I3 consumer: session a: sequence 3 was handled where 1 was due", true, []Message{e4, e3, e1}},
	} {
		t.Run(name, func(t *testing.T) {
			run := goodRun()
			run.Handled, run.Once, run.Skipped = c.handled, c.once, map[string]bool{"e2": true}
			got := run.Verify()
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("violations %q, want one starting with %q", got, c.want)
			}
		})
	}
}

// A position applies only to the events of its own change feed. The leases of each feed are
// checked separately.
func TestVerifyKeepsFeedsApart(t *testing.T) {
	run := goodRun()
	for i := range run.Events {
		run.Events[i].Feed, run.Events[i].LSN, run.Events[i].EPK = "orders", int64(i+1), "5"
	}
	run.Checkpoints = []Checkpoint{{Feed: "contacts", Lease: "l", Max: "FF", LSN: 9}}
	run.Settled = &Settled{Hosts: []string{"x"}, Owners: map[string]string{"l": "x"}}
	if got := run.Verify(); len(got) != 0 {
		t.Errorf("violations %q", got)
	}
	run.Checkpoints[0].Feed = "orders"
	run.Settled.Others = []*Settled{{Hosts: []string{"y"}, Owners: map[string]string{"l": "x"}}}
	got := run.Verify()
	for _, want := range []string{"I6 lease l", `I7 the lease l belongs to "x"`} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("violations %q, want one starting with %q", got, want)
		}
	}
}

// A position may pass an event that is parked already, and none that is parked later: if the relay crashed in
// between, the event would be lost.
func TestVerifyComparesPositionsWithTheTimeOfParking(t *testing.T) {
	run := goodRun()
	for i := range run.Events {
		run.Events[i].LSN, run.Events[i].EPK = int64(i+1), "5"
	}
	run.Messages, run.Parked = slices.Delete(run.Messages, 3, 4), map[string]bool{"e3": true}
	run.Checkpoints = []Checkpoint{{Lease: "l", Max: "FF", LSN: 1, Accepted: 1}, {Lease: "l", Max: "FF", LSN: 4, Accepted: 4}}
	for before, want := range []string{"", "", "I6 lease l"} { // positions that were written before e3 was parked
		run.SetAside = map[string]int{"e3": before}
		if got := run.Verify(); len(got) > 1 || !strings.HasPrefix(strings.Join(got, ""), want) || want == "" && len(got) > 0 {
			t.Errorf("parked after %d positions: violations %q, want %q", before, got, want)
		}
	}
	run.SetAside = nil // not observed
	if got := run.Verify(); len(got) > 0 {
		t.Errorf("violations %q without the times of parking", got)
	}
}
