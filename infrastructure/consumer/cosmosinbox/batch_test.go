package cosmosinbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
)

func event(sequence int64) *consumer.Event {
	m := mark(sequence)
	return &consumer.Event{ID: m.EventID, Key: "k", Action: "Added", Sequence: sequence, AggregateVersion: m.AggregateVersion}
}

// add is a handler that adds the event's sequence to a total, which shows a repeated effect.
func add(ctx context.Context, c *azcosmos.ContainerClient, inbox *cosmosinbox.Inbox, e *consumer.Event) error {
	batch, err := inbox.Batch(ctx, e)
	if err != nil {
		return err
	}
	total := total(ctx, c)
	batch.UpsertItem(fmt.Appendf(nil, `{"id":"total","partitionKey":"k","total":%d}`, total+e.Sequence), nil)
	return batch.Execute(ctx)
}

func total(ctx context.Context, c *azcosmos.ContainerClient) int64 {
	reply, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString("k"), "total", nil)
	var document struct{ Total int64 }
	if err == nil {
		err = json.Unmarshal(reply.Value, &document)
	}
	if err != nil {
		return 0
	}
	return document.Total
}

// A process may die after the batch and before the settlement. The event is then redelivered to
// another process, which must not repeat its effect.
func TestRedeliveryAfterTheBatchHasNoEffect(t *testing.T) {
	c, _ := newContainer(t)
	first := open(t, c, "sums", nil)
	for sequence := range int64(3) {
		if err := add(t.Context(), c, first, event(sequence+1)); err != nil {
			t.Fatal(err)
		}
	}
	second := open(t, c, "sums", nil) // with an empty cache
	for _, again := range []int64{2, 3} {
		if err := add(t.Context(), c, second, event(again)); err != nil {
			t.Errorf("event %d redelivered: %v", again, err)
		}
	}
	if err := add(t.Context(), c, second, event(4)); err != nil {
		t.Error(err)
	}
	if got := total(t.Context(), c); got != 10 {
		t.Errorf("the total is %d, want 10", got)
	}
	resubmitted := event(2) // dead-lettered before, so event 4 does not make it stale
	for _, id := range []string{"r1", "r1", "r2"} {
		resubmitted.Resubmission = id
		if err := add(t.Context(), c, second, resubmitted); err != nil {
			t.Errorf("resubmission %s: %v", id, err)
		}
	}
	if got := total(t.Context(), c); got != 14 {
		t.Errorf("the total is %d after two resubmissions of event 2, want 14", got)
	}
	if err := add(t.Context(), c, second, event(5)); err != nil {
		t.Errorf("the next event after resubmissions: %v", err)
	}
	want(t, first, "k", mark(5))
	record(t, second, "k", 5) // as the subscriber does next; the mark exists already
}

// The store has lost events 3 and 4, and gives their sequences to others.
func TestForkHasItsEffectOnce(t *testing.T) {
	c, _ := newContainer(t)
	first := open(t, c, "sums", nil)
	for sequence := range int64(4) {
		if err := add(t.Context(), c, first, event(sequence+1)); err != nil {
			t.Fatal(err)
		}
	}
	second := open(t, c, "sums", nil)
	fork := event(3)
	fork.ID = "other"
	for _, replaced := range []int64{2, 0} { // then redelivered
		fork.Replaced = 0
		if err := add(t.Context(), c, second, fork); err != nil || fork.Replaced != replaced {
			t.Errorf("%v; the event replaces %d, want %d", err, fork.Replaced, replaced)
		}
	}
	if got := total(t.Context(), c); got != 13 {
		t.Errorf("the total is %d, want 13", got)
	}
	want(t, first, "k", fork.Mark())

	last, err := first.Last(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	dead := event(2)
	dead.ID = "dead"
	for range 2 { // Record is repeated after a lost answer
		if err := second.Record(t.Context(), "k", last.Next(dead)); err != nil {
			t.Fatal(err)
		}
	}
	want(t, first, "k", dead.Mark())
}

// Two processes may handle the same event while one has not noticed that it lost its session.
func TestTwoOwnersHaveOneEffect(t *testing.T) {
	c, _ := newContainer(t)
	stale, owner := open(t, c, "sums", nil), open(t, c, "sums", nil)
	for _, b := range []*cosmosinbox.Inbox{stale, owner} {
		if _, err := b.Last(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	prepared, err := stale.Batch(t.Context(), event(1)) // before the owner handles event 1
	if err != nil {
		t.Fatal(err)
	}
	prepared.UpsertItem([]byte(`{"id":"total","partitionKey":"k","total":1000}`), nil)
	for sequence := range int64(2) {
		if err := add(t.Context(), c, owner, event(sequence+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := prepared.Execute(t.Context()); err != nil {
		t.Errorf("an event handled by the owner: %v", err)
	}
	late, err := stale.Batch(t.Context(), event(4))
	if err != nil {
		t.Fatal(err)
	}
	if err := add(t.Context(), c, owner, event(3)); err != nil {
		t.Fatal(err)
	}
	late.UpsertItem([]byte(`{"id":"total","partitionKey":"k","total":1000}`), nil)
	if err := late.Execute(t.Context()); err == nil || !strings.Contains(err.Error(), "another owner") {
		t.Errorf("a batch under an outdated mark: %v", err)
	}
	if got := total(t.Context(), c); got != 6 {
		t.Errorf("the total is %d, want 6", got)
	}

	var racers sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		inbox := open(t, c, "sums", nil)
		racers.Go(func() { errs[i] = add(t.Context(), c, inbox, event(4)) })
	}
	racers.Wait()
	if err := errors.Join(errs...); err != nil || total(t.Context(), c) != 10 {
		t.Errorf("eight concurrent calls: %v, the total is %d, want 10", err, total(t.Context(), c))
	}
}

// An event that another process is parking is not handled, whether that was known before the batch or not.
func TestEventThatIsBeingParkedIsNotHandled(t *testing.T) {
	c, _ := newContainer(t)
	stale, fresh, owner := open(t, c, "sums", nil), open(t, c, "sums", nil), open(t, c, "sums", nil)
	if err := add(t.Context(), c, stale, event(1)); err != nil {
		t.Fatal(err)
	}
	prepared, err := stale.Batch(t.Context(), event(2))
	if err != nil {
		t.Fatal(err)
	}
	announced := mark(1)
	announced.Parking = "e2"
	for range 2 { // the answer of the first may be lost
		if err := owner.Record(t.Context(), "k", announced); err != nil {
			t.Fatal(err)
		}
	}
	want(t, fresh, "k", announced)
	if err := prepared.Execute(t.Context()); !errors.Is(err, consumer.ErrParking) {
		t.Errorf("executed: %v", err)
	}
	for name, inbox := range map[string]*cosmosinbox.Inbox{"stale": stale, "fresh": fresh} {
		if err := add(t.Context(), c, inbox, event(2)); !errors.Is(err, consumer.ErrParking) {
			t.Errorf("%s: %v", name, err)
		}
	}
	record(t, owner, "k", 2)
	if err := fresh.Record(t.Context(), "k", announced); err != nil { // too late
		t.Fatal(err)
	}
	want(t, fresh, "k", mark(2))
	if err := add(t.Context(), c, fresh, event(3)); err != nil || total(t.Context(), c) != 4 {
		t.Errorf("the next event: %v, the total is %d, want 4", err, total(t.Context(), c))
	}
}

func TestRefusedBatchStoresNoMark(t *testing.T) {
	c, _ := newContainer(t)
	inbox := open(t, c, "sums", nil)
	batch, err := inbox.Batch(t.Context(), event(1))
	if err != nil {
		t.Fatal(err)
	}
	batch.ReplaceItem("missing", []byte(`{"id":"missing","partitionKey":"k"}`), nil)
	if err := batch.Execute(t.Context()); err == nil || !strings.Contains(err.Error(), "operation 1 was refused with status 404") {
		t.Errorf("executed: %v", err)
	}
	want(t, inbox, "k", consumer.Mark{})
	if err := add(t.Context(), c, inbox, event(1)); err != nil || total(t.Context(), c) != 1 {
		t.Errorf("retry: %v", err)
	}
	for name, wrong := range map[string]func() error{
		"no event": func() error { _, err := inbox.Batch(t.Context(), nil); return err },
		"no key":   func() error { _, err := inbox.Batch(t.Context(), &consumer.Event{ID: "e"}); return err },
		"nil":      func() error { var none *cosmosinbox.Batch; return none.Execute(t.Context()) },
		"zero":     func() error { return new(cosmosinbox.Batch).Execute(t.Context()) },
	} {
		if wrong() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
