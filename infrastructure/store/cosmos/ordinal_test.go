package cosmos_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/relay"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// fed returns the events of the container's change feed, each transaction backwards, because the
// feed promises no order within a transaction.
func (w *world) fed() []relay.Message {
	w.t.Helper()
	ranges, err := w.container.ReadFeedRanges(w.t.Context(), nil)
	must(w.t, err)
	var events []relay.Message
	for i := range ranges {
		token := ""
		for {
			page, err := w.container.ReadChangeFeed(w.t.Context(), &azcosmos.ChangeFeedOptions{FeedRange: &ranges[i], Continuation: &token})
			must(w.t, err)
			if token = page.ContinuationToken; page.Count == 0 {
				break
			}
			for _, raw := range page.Items {
				m, isEvent, err := document.EventDecoder{}.Decode(raw)
				must(w.t, err)
				if isEvent {
					events = append(events, m)
				}
			}
		}
	}
	slices.Reverse(events)
	return events
}

// inOrder sorts events as the relay does and returns "action ordinal" of each.
func inOrder(events []relay.Message) string {
	slices.SortStableFunc(events, func(a, b relay.Message) int {
		return cmp.Or(cmp.Compare(a.LSN, b.LSN), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	var order []string
	for _, e := range events {
		order = append(order, e.Action+" "+string(rune('0'+e.Ordinal)))
	}
	return strings.Join(order, ", ")
}

func TestEmittedEventsAreNumberedInTheOrderOfTheCalls(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	for _, names := range [][]string{{"C", "A", "B"}, {"E", "D"}} {
		b := outbox.Batch("k").Put(invoice{ID: "of " + names[0]}, "")
		for i, name := range names {
			if i%2 == 0 {
				b.Emit(name, map[string]int{"n": i})
			} else {
				b.EmitEvent(cosmos.Event{Action: name, ID: uuid.New(), At: time.Now()})
			}
		}
		_, err := b.Commit(t.Context())
		must(t, err)
	}
	if got, want := inOrder(w.fed()), "C 1, A 2, B 3, E 1, D 2"; got != want {
		t.Errorf("the feed has the events %s; want %s", got, want)
	}
}

// A repeated commit encodes the events again, with the same ordinals.
func TestEventsOfAUnitOfWorkAreNumberedInTheOrderOfTheirRecording(t *testing.T) {
	t.Parallel()
	w, baskets := newBaskets(t)
	opened, err := baskets.Create(t.Context(), opening(""))
	must(t, err)
	work, err := baskets.Work.Begin("")
	must(t, err)
	b, err := work.Read(t.Context(), opened.Aggregate.ID(), nil)
	must(t, err)
	b.add("pens")
	b.add("paper")
	b.MarkDeleted()
	aggregate.Record(&b.Root, basketDropped{}, uuid.New(), time.Now())
	w.wire.follow(once(refuse(http.StatusForbidden)))
	if _, err := work.Commit(t.Context()); err == nil {
		t.Fatal("a refused commit returned no error")
	}
	_, err = work.Commit(t.Context())
	must(t, err)
	if got, want := inOrder(w.fed()), "BasketOpenedEvent 1, LineAddedEvent 1, LineAddedEvent 2, BasketDroppedEvent 3"; got != want {
		t.Errorf("the feed has the events %s; want %s", got, want)
	}
}

func TestEditedEventKeepsItsOrdinal(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	second := uuid.New()
	_, err := outbox.Batch("k").Emit("A", nil).EmitEvent(cosmos.Event{Action: "B", ID: second}).Commit(t.Context())
	must(t, err)
	events, err := cosmos.NewEventStore(w.container, document.EventDecoder{})
	must(t, err)
	raw, err := events.Event(t.Context(), "k", second.String())
	must(t, err)
	clean, version, err := events.Editable(raw)
	must(t, err)
	must(t, events.Replace(t.Context(), "k", second.String(), []byte(strings.Replace(string(clean), `"B"`, `"Corrected"`, 1)), version))
	if got, want := inOrder(w.fed()), "A 1, Corrected 2"; got != want {
		t.Errorf("the feed has the events %s; want %s", got, want)
	}
}

func TestEventIDIsRefusedTwiceInATransaction(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	e := cosmos.Event{Action: "A", ID: uuid.New()}
	for name, b := range map[string]*cosmos.Batch{
		"two events":             outbox.Batch("k").EmitEvent(e).EmitEvent(e),
		"an event of a document": outbox.Batch("k").Put(map[string]any{"id": e.ID}, "").EmitEvent(e),
	} {
		if _, err := b.Commit(t.Context()); err == nil || fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), e.ID.String()) {
			t.Errorf("%s: %v; want an error of the caller that names the id", name, err)
		}
	}
	if got := w.fed(); len(got) > 0 {
		t.Errorf("the feed has %d events of refused transactions", len(got))
	}
}

// The body of a message has the ordinal as a number, and no payload can have a member of that name.
func TestOrdinalIsReservedInPayloads(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	if _, err := outbox.Batch("k").Emit("A", map[string]int{"ordinal": 7}).Commit(t.Context()); err == nil || !strings.Contains(err.Error(), "ordinal: the name of the member is taken") {
		t.Errorf("a payload with an ordinal: %v", err)
	}
	_, err := outbox.Batch("k").Emit("A", nil).Commit(t.Context())
	must(t, err)
	var body struct {
		Ordinal json.Number `json:"ordinal"`
	}
	must(t, json.Unmarshal(w.fed()[0].Body, &body))
	if body.Ordinal != "1" {
		t.Errorf("the ordinal in the body is %q", body.Ordinal)
	}
}
