package verify

import (
	"cmp"
	"fmt"
)

// Verdict is the result of a Run, in the form of feedbox-dev verify -o json.
type Verdict struct {
	Kept     bool     `json:"kept"`     // a change was acknowledged, and no promise is broken
	Promises []Judged `json:"promises"` // those of Tallies
	// Breaches contain the ids involved: at most 20 of each promise, and a line for each
	// promise that has more. Without a breach and without an acknowledged change it is NothingProven.
	Breaches []string `json:"breaches"`
	// Redelivered counts the redeliveries of the broker, which break no promise.
	Redelivered int `json:"redelivered"`
}

// NothingProven is the only one of Breaches of a run that has no breach and no acknowledged change.
const NothingProven = "no change was acknowledged, so nothing is proven"

// Judged is one promise of the outbox with its result.
type Judged struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Tested  bool   `json:"tested"` // false if the files are not enough to check it
	Checked string `json:"checked"`
	Broken  int    `json:"broken"`
}

// Judge verifies a run and describes what was checked. I1 and I5 need the store.
func Judge(run Run, store bool) *Verdict {
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
	messages := fmt.Sprintf("%d messages", len(run.Messages))
	checked := map[string]string{
		"I1": without(fmt.Sprintf("%d aggregates, %d events", len(run.Aggregates), len(run.Events))),
		"I2": lost,
		"I3": fmt.Sprintf("%s in %d sessions", messages, len(sessions)),
		"I4": messages,
		"I5": without(messages),
	}
	found := run.Report().Only(func(id string) bool {
		return store || id != "I1" && id != "I5" // without a store, the events are derived from the messages; I3 reports the gap
	})
	r := &Verdict{Kept: len(found.Broken) == 0 && acked > 0, Breaches: append([]string{}, found.Lines()...)}
	if acked == 0 && len(found.Broken) == 0 { // otherwise a system that refuses everything would keep its promises
		r.Breaches = append(r.Breaches, NothingProven)
	}
	for _, p := range Tallies(found.Broken) {
		r.Promises = append(r.Promises, Judged{
			ID: p.ID, Text: p.Text, Tested: store || p.ID != "I1" && p.ID != "I5", Checked: cmp.Or(checked[p.ID], "only breaches are listed"), Broken: p.Broken,
		})
	}
	return r
}
