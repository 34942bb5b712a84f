package main

import (
	"fmt"
	"strings"

	"feedbox/infrastructure/verify"
)

// report is the verdict of verify, as -o json writes it.
type report struct {
	Kept     bool      `json:"kept"`
	Promises []promise `json:"promises"`
	// Breaches are worded with the ids involved; at most 50 and a line that says there
	// are more.
	Breaches []string `json:"breaches"`
	// Redelivered is how many messages the broker delivered again. That breaks nothing.
	Redelivered int `json:"redelivered"`
}

// promise is one promise of the outbox and what became of it.
type promise struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Tested  bool   `json:"tested"` // false: the files do not tell
	Checked string `json:"checked"`
	Broken  int    `json:"broken"`
}

// judge verifies a run and counts what was checked. Without the store, I1 and I5
// cannot be.
func judge(run verify.Run, store bool) *report {
	acked, unknown := 0, run.LostCreates
	for _, n := range run.Acked {
		acked += n
	}
	for _, n := range run.Unknown {
		unknown += n
	}
	sessions := map[string]bool{}
	for _, m := range run.Messages {
		sessions[m.Session] = true
	}
	without := func(text string) string {
		if store {
			return text
		}
		return "needs --store"
	}
	lost := fmt.Sprintf("%d changes acknowledged, %d of unknown outcome", acked, unknown)
	if store {
		lost += fmt.Sprintf(", %d events, %d parked", len(run.Events), len(run.Parked))
	}
	r := &report{Breaches: []string{}, Promises: []promise{
		{ID: "I1", Text: "a change and its events are stored together or not at all", Tested: store, Checked: without(fmt.Sprintf("%d contacts, %d events", len(run.Aggregates), len(run.Events)))},
		{ID: "I2", Text: "nothing acknowledged is lost", Tested: true, Checked: lost},
		{ID: "I3", Text: "the events of a contact arrive in order, without a gap", Tested: true, Checked: fmt.Sprintf("%d messages in %d sessions", len(run.Messages), len(sessions))},
		{ID: "I4", Text: "no message arrives twice", Tested: true, Checked: fmt.Sprintf("%d messages", len(run.Messages))},
		{ID: "I5", Text: "every message is a stored event", Tested: store, Checked: without(fmt.Sprintf("%d messages", len(run.Messages)))},
	}}
	for _, breach := range run.Verify() {
		if !store && (strings.HasPrefix(breach, "I1") || strings.HasPrefix(breach, "I5")) {
			continue // of the store that was made up: I3 tells of the gap
		}
		r.Breaches = append(r.Breaches, breach)
		for i := range r.Promises {
			if strings.HasPrefix(breach, r.Promises[i].ID+" ") {
				r.Promises[i].Broken++
			}
		}
	}
	r.Kept = len(r.Breaches) == 0
	return r
}
