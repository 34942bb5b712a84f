package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// letterBox is a dead-letter queue that records the ids of letters and of their resubmissions. It refuses
// the letters of refused.
type letterBox struct {
	relayport.DeadLetters
	BrokerDoctor
	refused       string
	sent, removed []string
	resubmissions map[string]string // by letter
	claimed, open int
	window        Window
	reach         string
}

func (b *letterBox) Window(context.Context, string) Window { return b.window }

func (b *letterBox) Reach(string) string { return b.reach }

func (b *letterBox) Claim(context.Context, string, []string) (relayport.LetterClaim, error) {
	b.claimed++
	b.open++
	return b, nil
}

func (b *letterBox) Resubmit(_ context.Context, id string, r relayport.Resubmission) error {
	if strings.Contains(b.refused, id) {
		return errors.New("no room")
	}
	b.sent = append(b.sent, id)
	b.resubmissions[id] = r.ID
	return nil
}

func (b *letterBox) Remove(_ context.Context, id string) error {
	b.removed = append(b.removed, id)
	return nil
}

func (b *letterBox) Release(context.Context) { b.open-- }

// resubmit plans and sends those letters whose reason is "chosen".
func (b *letterBox) resubmit(t *testing.T, letters ...DeadLetter) (*Resubmission, []LetterFailure) {
	t.Helper()
	b.resubmissions = map[string]string{}
	o := New(&config.Relay{}, Store{}, &Broker{DeadLetters: b, Doctor: b})
	plan, err := o.PlanResubmission(t.Context(), "", "billing", letters, func(l DeadLetter) bool { return l.Reason == "chosen" })
	if err != nil {
		t.Fatal(err)
	}
	failures, err := o.Resubmit(t.Context(), plan, func() {})
	if err != nil || b.open != 0 || !slices.Equal(b.sent, b.removed) {
		t.Errorf("%v; of %d claims, %d are not released; sent %v, removed %v", err, b.claimed, b.open, b.sent, b.removed)
	}
	return plan, failures
}

func TestNothingOfAKeyIsSentIfAnOlderLetterWasNotChosen(t *testing.T) {
	b := &letterBox{}
	plan, failures := b.resubmit(t,
		DeadLetter{ID: "1", Key: "a", Event: "a1", Sequence: 1, Reason: "chosen"}, DeadLetter{ID: "2", Key: "b", Event: "b1", Sequence: 1, Reason: "chosen"},
		DeadLetter{ID: "3", Key: "a", Event: "a2", Sequence: 2}, DeadLetter{ID: "4", Key: "b", Event: "b2", Sequence: 2}, DeadLetter{ID: "5", Key: "a", Event: "a3", Sequence: 3, Reason: "chosen"})
	if len(failures) != 0 || plan.Letters != 1 || !slices.Equal(plan.LeftOut, []string{"a"}) || !slices.Equal(b.sent, []string{"2"}) {
		t.Errorf("sent %v of %+v, %v", b.sent, plan, failures)
	}
}

func TestLettersWithoutAKeyDoNotStopEachOther(t *testing.T) {
	b := &letterBox{refused: "2"}
	_, failures := b.resubmit(t, DeadLetter{ID: "1", Reason: "chosen"}, DeadLetter{ID: "2", Reason: "chosen"}, DeadLetter{ID: "3", Reason: "chosen"})
	if len(failures) != 1 || failures[0].Letter != "2" || failures[0].Left != 1 || !slices.Equal(b.sent, []string{"1", "3"}) {
		t.Errorf("sent %v, %+v", b.sent, failures)
	}
}

// The consumer drops a second letter of an event by the id of the resubmission.
func TestLettersOfOneEventHaveOneResubmission(t *testing.T) {
	b := &letterBox{}
	plan, _ := b.resubmit(t,
		DeadLetter{ID: "1", Key: "a", Event: "a1", Reason: "chosen"}, DeadLetter{ID: "2", Key: "a", Event: "a1", Reason: "chosen"}, DeadLetter{ID: "3", Key: "a", Event: "a2", Reason: "chosen"},
		DeadLetter{ID: "4", Key: "a", Reason: "chosen"}, DeadLetter{ID: "5", Key: "a", Reason: "chosen"}, DeadLetter{ID: "6", Key: "b", Event: "a1", Reason: "chosen"})
	ids := map[string]bool{}
	for _, id := range b.resubmissions {
		ids[id] = true
	}
	if len(b.sent) != 6 || plan.Repeats != 1 || b.resubmissions["1"] != b.resubmissions["2"] || len(ids) != 5 {
		t.Errorf("%d repeats; resubmissions %v", plan.Repeats, b.resubmissions)
	}
}

// The effects name the mechanisms of this broker that drop repeats, and no others.
func TestEffectsOfAResubmissionAreThoseOfItsBroker(t *testing.T) {
	once := []DeadLetter{{ID: "1", Key: "a", Event: "a1", Reason: "chosen"}}
	twice := append(slices.Clone(once), DeadLetter{ID: "2", Key: "a", Event: "a1", Reason: "chosen"})
	const newID, order, crash, repeat, others = "new message id", "in the order of the key", "A crash in between", "repeat an event of another one", "All consumers of "
	for name, c := range map[string]struct {
		box     letterBox
		letters []DeadLetter
		drops   string // end of the effects about repeats
		want    []string
	}{
		"no window":         {letterBox{}, once, "the inbox of the consumer drops it.", []string{order, "handles each once", crash}},
		"a window":          {letterBox{window: Window{Length: 10 * time.Minute}}, once, "the duplicate window of 10m0s or the inbox of the consumer drops it.", []string{order, "handles each once", newID, crash}},
		"an assumed window": {letterBox{window: Window{Length: 10 * time.Minute, Assumed: true}}, once, "the duplicate window (10m0s is assumed, it could not be read) or the inbox of the consumer drops it.", []string{order, "handles each once", newID, crash}},
		"a repeat":          {letterBox{}, twice, "the inbox of the consumer drops it.", []string{order, "handles each once", crash, "1 of the letters " + repeat}},
		"a shared topic":    {letterBox{reach: "topic contacts"}, once, "the inbox of the consumer drops it.", []string{order, "handles each once", crash, others + "topic contacts receive them"}},
	} {
		plan, _ := c.box.resubmit(t, c.letters...)
		if len(plan.Effects) != len(c.want) {
			t.Errorf("%s: %d effects, want %d: %q", name, len(plan.Effects), len(c.want), plan.Effects)
			continue
		}
		for i, want := range c.want {
			got := plan.Effects[i]
			if drops := want == crash || strings.HasSuffix(want, repeat); !strings.Contains(got, want) || drops && !strings.HasSuffix(got, c.drops) {
				t.Errorf("%s: effect %q, want %q, and that of a repeat %q", name, got, want, c.drops)
			}
		}
	}
}

// An empty list would say that no consumer has dead letters.
func TestConsumersWithoutReadableLettersAreAnError(t *testing.T) {
	o := New(&config.Relay{}, Store{}, &Broker{Doctor: &letterBox{}})
	if names, err := o.ListConsumers(t.Context(), ""); err == nil {
		t.Errorf("consumers %v without an error", names)
	}
	if letters, more, err := o.ReadDeadLetters(t.Context(), "billing", 1); err == nil {
		t.Errorf("letters %v, more %t, without an error", letters, more)
	}
	o.cfg.Broker.Consumers = []string{"billing"}
	if names, err := o.Consumers(t.Context(), ""); err == nil {
		t.Errorf("consumers %v of the configuration without an error", names)
	}
}

// Otherwise letters stay locked for minutes after a canceled command.
func TestClaimIsReleasedAfterACancellation(t *testing.T) {
	box := &letterBox{resubmissions: map[string]string{}}
	o := New(&config.Relay{}, Store{}, &Broker{DeadLetters: box, Doctor: box})
	ctx, cancel := context.WithCancel(t.Context())
	failures, err := o.Discard(ctx, "billing", []DeadLetter{{ID: "1", Key: "a"}, {ID: "2", Key: "b"}}, cancel)
	if !errors.Is(err, context.Canceled) || len(failures) != 1 || !slices.Equal(box.removed, []string{"1"}) || box.open != 0 {
		t.Errorf("removed %v, failures %+v, %v; %d of %d claims are not released", box.removed, failures, err, box.open, box.claimed)
	}
}
