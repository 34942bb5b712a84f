package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// Letters is a broker with one consumer, for TestDeadLetters.
type Letters struct {
	Port     relayport.DeadLetters
	Doctor   operator.BrokerDoctor
	Consumer string
	Publish  func(t *testing.T, groups []relay.Group)
	// Start starts the consumer with an inbox.
	Start func(t *testing.T, handler consumer.Handler, inbox consumer.Inbox) (stop func())
	// Others are the ids of events that other consumers handled; nil if there are no others.
	Others func() []string
	// Eventually waits for a condition.
	Eventually func(t *testing.T, what string, ok func() bool)
}

// lettersHandler dead-letters events until they are accepted.
type lettersHandler struct {
	mu      sync.Mutex // guards the fields below
	accepts bool
	handled []string // "id body", in order
}

func (h *lettersHandler) handle(_ context.Context, e *consumer.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.accepts && strings.Contains(string(e.Body), "bad") {
		return consumer.DeadLetter("unknown_schema", errors.New("no decoder of "+e.ID))
	}
	h.handled = append(h.handled, e.ID)
	return nil
}

func (h *lettersHandler) accept(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.accepts, h.handled = yes, nil
}

func (h *lettersHandler) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.handled)
}

func lettersOf(key, pattern string) relay.Group {
	g := relay.Group{Key: key}
	for i, kind := range pattern {
		body := map[rune]string{'g': `{"a":"good"}`, 'b': `{"a":"bad"}`}[kind]
		n := int64(i + 1)
		g.Messages = append(g.Messages, relay.Message{
			ID: fmt.Sprint(key, n), Key: key, Action: "Happened", Body: []byte(body), Sequence: n, AggregateVersion: n, CreatedAt: "2026-01-31T08:00:00.5Z", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		})
	}
	return g
}

// TestDeadLetters checks the rules that dead letters of every broker obey. The queue must be empty.
func TestDeadLetters(t *testing.T, l Letters) {
	t.Helper()
	ctx := t.Context()
	o := operator.New(&config.Relay{}, operator.Store{}, &operator.Broker{DeadLetters: l.Port, Doctor: l.Doctor})
	h := &lettersHandler{}
	inbox := consumer.NewMemoryInbox(0)
	stop := l.Start(t, h.handle, inbox)
	defer func() { stop() }()
	read := func() []relayport.DeadLetter {
		t.Helper()
		letters, _, err := o.ReadDeadLetters(ctx, l.Consumer, 100) // more may arrive meanwhile
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		return letters
	}
	events := func(letters []relayport.DeadLetter) (ids []string) {
		for _, one := range letters {
			ids = append(ids, one.Event)
		}
		slices.Sort(ids)
		return ids
	}
	awaitLetters := func(want ...string) []relayport.DeadLetter {
		t.Helper()
		l.Eventually(t, fmt.Sprint("dead letters ", want), func() bool { return slices.Equal(events(read()), want) })
		return read()
	}
	awaitHandled := func(want ...string) {
		t.Helper()
		l.Eventually(t, fmt.Sprint("handled ", want), func() bool { return len(h.got()) >= len(want) })
		if got := h.got(); !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
	}
	resubmit := func(letters []relayport.DeadLetter, bodies map[string][]byte, chosen func(relayport.DeadLetter) bool) *operator.Resubmission {
		t.Helper()
		p, err := o.PlanResubmission(ctx, "", l.Consumer, letters, chosen)
		if err != nil {
			t.Fatal(err)
		}
		p.Bodies = bodies
		sent := 0
		if failures, err := o.Resubmit(ctx, p, func() { sent++ }); err != nil || len(failures) > 0 || sent != p.Letters {
			t.Fatalf("sent %d of %d: %v, %v", sent, p.Letters, failures, err)
		}
		return p
	}
	of := func(key string) func(relayport.DeadLetter) bool {
		return func(l relayport.DeadLetter) bool { return l.Key == key }
	}

	// Letters have what a person needs, and reading them changes nothing.
	l.Publish(t, []relay.Group{lettersOf("k", "gbbg"), lettersOf("z", "b")})
	awaitLetters("k2", "k3", "z1")
	letters := awaitLetters("k2", "k3", "z1")
	for _, one := range letters {
		if one.ID == "" || one.Reason != "unknown_schema" || one.Description != "no decoder of "+one.Event || one.Action != "Happened" || string(one.Body) != `{"a":"bad"}` ||
			one.Key != one.Event[:1] || fmt.Sprint(one.Sequence) != one.Event[1:] || len(one.Headers) == 0 {
			t.Errorf("letter %+v", one)
		}
	}
	if all, more, err := o.ReadDeadLetters(ctx, l.Consumer, 3); len(all) != 3 || more || err != nil {
		t.Errorf("all letters: %d, more %v, %v", len(all), more, err)
	}
	if some, more, err := o.ReadDeadLetters(ctx, l.Consumer, 1); len(some) != 1 || !more || err != nil {
		t.Errorf("the first letter: %d, more %v, %v", len(some), more, err)
	}
	if _, _, err := o.ReadDeadLetters(ctx, "nosuch", 1); err == nil {
		t.Error("a consumer that does not exist has dead letters")
	}

	// A letter that is not the first of its key is left out.
	p, err := o.PlanResubmission(ctx, "", l.Consumer, letters, func(l relayport.DeadLetter) bool { return l.Event == "k3" || l.Event == "z1" })
	if err != nil || p.Letters != 1 || !slices.Equal(p.LeftOut, []string{"k"}) {
		t.Errorf("plan %+v, %v", p, err)
	}

	// The letters of a key are handled once and in order, although the consumer has handled a later event.
	h.accept(true)
	resubmit(letters, nil, of("k"))
	awaitHandled("k2", "k3")
	letters = awaitLetters("z1")

	// A crash between sending and removing repeats the letter, and the consumer handles it once.
	claim, err := l.Port.Claim(ctx, l.Consumer, []string{letters[0].ID, "12345678"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"resubmission-1", "resubmission-1"} {
		if err := claim.Resubmit(ctx, letters[0].ID, relayport.Resubmission{ID: id}); err != nil {
			t.Errorf("resubmit: %v", err)
		}
	}
	if err := claim.Remove(ctx, "12345678"); !errors.Is(err, relayport.ErrNoLetter) {
		t.Errorf("a letter that does not exist: %v", err)
	}
	claim.Release(ctx)
	awaitLetters("z1")
	l.Publish(t, []relay.Group{{Key: "z", Messages: lettersOf("z", "gg").Messages[1:]}}) // after the repeat
	awaitHandled("k2", "k3", "z1", "z2")

	// A resubmitted event that fails again is a dead letter again, before later ones of its key. Each time
	// is another letter, so another resubmission is no repeat.
	h.accept(false)
	l.Publish(t, []relay.Group{lettersOf("m", "bb")})
	letters = awaitLetters("m1", "m2", "z1")
	for range 2 {
		resubmit(letters, nil, func(l relayport.DeadLetter) bool { return l.Event == "m1" })
		letters = awaitLetters("m1", "m2", "z1")
	}
	first := letters[slices.IndexFunc(letters, func(l relayport.DeadLetter) bool { return l.Event == "m1" })]

	// A corrected body replaces that of the letter.
	resubmit(letters, map[string][]byte{first.ID: []byte(`{"a":"corrected"}`)}, func(l relayport.DeadLetter) bool { return l.Event == "m1" })
	awaitHandled("m1")
	h.accept(true)
	resubmit(awaitLetters("m2", "z1"), nil, of("m"))
	awaitHandled("m2")

	// A discarded letter is not sent.
	if failures, err := o.Discard(ctx, l.Consumer, awaitLetters("z1"), func() {}); err != nil || len(failures) > 0 {
		t.Errorf("discard: %v, %v", failures, err)
	}
	awaitLetters()
	time.Sleep(time.Second)
	awaitHandled("m2")
	if l.Others != nil {
		want := []string{"k1", "k2", "k3", "k4", "m1", "m2", "z1", "z2"}
		got := l.Others()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("another consumer handled %q, want each event once", got)
		}
	}
}
