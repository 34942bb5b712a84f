package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// parkedActs returns the acts on parked keys. The query names the key or the reason, and the consumer
// unless the keys are those of the relay.
func (s *Operations) parkedActs() []page.Act {
	return []page.Act{
		{Path: "retry", Title: "Retry a parked key", Verb: "Retry", Preview: s.previewRetry, Do: s.doRetry},
		{Path: "retry-all", Title: "Retry many keys", Verb: "Retry all of them", Preview: s.previewRetryAll, Do: s.doRetryAll},
		{Path: "skip", Title: "Skip an event for good", Verb: "Skip it", Danger: true, Preview: s.previewSkip, Do: s.doSkip},
		{Path: "mend", Title: "Correct an event", Verb: "Store it and retry", Preview: s.previewEdit, Do: s.doEdit},
	}
}

// notParkedRefusal explains what to do if a key has no gate.
func notParkedRefusal(key string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return &page.Refusal{
			Status: http.StatusNotFound, Title: "The key is not parked", Detail: "The events of " + key + " flow, or the key does not exist.",
			Next: "See its timeline, or the list of parked keys.",
		}
	}
	return err
}

func (s *Operations) previewRetry(ctx context.Context, q url.Values) (*page.Preview, error) {
	key := q.Get("key")
	port, err := s.portOf(q)
	if err != nil {
		return nil, err
	}
	g, err := port.Gate(ctx, key)
	if err != nil {
		return nil, notParkedRefusal(key, err)
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("%s the %d waiting events in order, as they were parked. Then the key flows again.", handles(q), g.Events),
		Facts: keyFacts(q,
			page.Fact{Name: "waiting events", Value: fmt.Sprint(g.Events)},
			page.Fact{Name: "parked for", Value: g.Closing.Reason},
			page.Fact{Name: "attempts so far", Value: fmt.Sprint(g.Attempts)},
		),
		Stamp: g.Version,
	}
	if q.Get("consumer") != "" { // its events are in no store but that of parked events
		return p, nil
	}
	p.Fields = []page.Field{fromStoreField(q)}
	if q.Get("store") == "" {
		return p, nil
	}
	c, err := s.o.Port.CompareParked(ctx, key)
	if err != nil {
		return nil, err
	}
	p.Summary = fmt.Sprintf("A relay sends the %d waiting events in order, each as currently stored. Then the key flows again.", g.Events)
	p.Facts = append(p.Facts,
		page.Fact{Name: "compared with the store", Value: fmt.Sprintf("the first %d", c.Events)},
		page.Fact{Name: "differ", Value: listed(c.Differ)}, page.Fact{Name: "no longer stored", Value: listed(c.Gone)})
	if len(c.Gone) > 0 { // the relay would refuse it
		p.Blocked = "Events are no longer stored: they have expired or were removed. Retry the key without the store, to send its events as they were parked."
	}
	return p, nil
}

// keyFacts returns the facts of a key that a query names, with more.
func keyFacts(q url.Values, more ...page.Fact) []page.Fact {
	facts := []page.Fact{{Name: "key", Value: q.Get("key")}}
	if name := q.Get("consumer"); name != "" {
		facts = append(facts, page.Fact{Name: "consumer", Value: name})
	}
	return append(facts, more...)
}

// fromStoreField lets a retry send the stored events in place of the parked ones.
func fromStoreField(q url.Values) page.Field {
	return page.Field{Name: "store", Label: "Send each event as currently stored", Kind: "check", Value: q.Get("store"), Hint: "after a correction in the store"}
}

func listed(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", len(ids), strings.Join(ids[:min(3, len(ids))], ", "))
}

func (s *Operations) doRetry(ctx context.Context, o *page.Order) error {
	key := o.Values.Get("key")
	port, err := s.portOf(o.Values)
	if err != nil {
		return err
	}
	return s.noteAndWait(ctx, port, o, key, relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why, FromStore: o.Values.Get("store") != ""})
}

const (
	// waitForRelay bounds how long an act waits until a relay or a consumer has carried out an intent.
	waitForRelay = time.Minute
	gatePoll     = 300 * time.Millisecond
)

// noteAndWait notes an intent and waits until a relay or the consumer has carried it out, because the page
// itself never sends parked events.
func (s *Operations) noteAndWait(ctx context.Context, port Port, o *page.Order, key string, intent relay.Intent) error {
	before, err := port.Note(ctx, key, intent)
	if err != nil {
		return notParkedRefusal(key, err)
	}
	return s.await(ctx, port, o, before, intent.Verb)
}

// await waits until the intent of a gate was carried out.
func (s *Operations) await(ctx context.Context, port Port, o *page.Order, before relay.Gate, verb relay.Verb) error {
	key, party, consumer := before.Key, "relay", o.Values.Get("consumer")
	if consumer != "" {
		party = "consumer"
	}
	o.Say(fmt.Sprintf("Noted: %s of %s. %d events are waiting.", verb, key, before.Events))
	o.Next("See the key", page.Keyed("/parked/keys", key, "consumer", consumer))
	defer func() { s.keys.forget(); s.timelines.forget(); s.reader.refresh() }()
	bounded, cancel := context.WithTimeout(ctx, waitForRelay)
	defer cancel()
	for {
		g, err := port.Gate(bounded, key)
		switch {
		case fault.Is(err, fault.NotFound):
			o.Progress(before.Events, before.Events)
			o.Say("Done: the events were " + map[string]string{"relay": "sent", "consumer": "handled"}[party] + " in order, and the key flows again.")
			o.Next("See the timeline of the key", page.Keyed("/life", key))
			return nil
		case bounded.Err() != nil: // reported below
		case err != nil:
			return err
		case g.Intent == nil && g.Attempts > before.Attempts:
			return &page.Refusal{Status: http.StatusConflict, Title: "The key stays parked", Detail: g.Error, Next: "Correct the event, then retry the key."}
		case g.Intent == nil && !g.Closing.At.Equal(before.Closing.At): // it was open in between
			return &page.Refusal{Status: http.StatusConflict, Title: "The key flowed and is parked again", Detail: g.Closing.Error, Next: "See the key."}
		default:
			o.Progress(max(0, before.Events-g.Events), before.Events)
		}
		select {
		case <-time.After(gatePoll):
		case <-bounded.Done():
			if ctx.Err() != nil {
				return errors.New("this process is stopping; the request stays noted")
			}
			o.Say(fmt.Sprintf("No %s finished within %s. The request stays noted.", party, waitForRelay))
			return nil
		}
	}
}

func (s *Operations) previewRetryAll(ctx context.Context, q url.Values) (*page.Preview, error) {
	port, err := s.portOf(q)
	if err != nil {
		return nil, err
	}
	gates, err := port.GatesFor(ctx, q.Get("reason"))
	if err != nil {
		return nil, err
	}
	reasons := operator.Reasons(gates)
	var events int64
	keys := fnv.New64a()
	for _, g := range slices.SortedFunc(slices.Values(gates), func(a, b relay.Gate) int { return cmp.Compare(a.Key, b.Key) }) {
		events += g.Events
		fmt.Fprintf(keys, "%q ", g.Key)
	}
	p := &page.Preview{
		Summary:  fmt.Sprintf("%d keys with %d events. %s them in order within each key. Keys do not wait for each other.", len(gates), events, handles(q)),
		Facts:    []page.Fact{{Name: "keys", Value: fmt.Sprint(len(gates))}, {Name: "events", Value: fmt.Sprint(events)}},
		Template: "reasons.html", Data: reasons, Stamp: fmt.Sprint(len(gates), events, keys.Sum64()),
	}
	if q.Get("consumer") == "" {
		p.Fields = []page.Field{fromStoreField(q)}
	}
	if len(gates) == 0 {
		p.Blocked = "No key is parked for this reason."
	}
	if len(gates) > 1 {
		p.Typed = fmt.Sprint(len(gates))
	}
	return p, nil
}

func (s *Operations) doRetryAll(ctx context.Context, o *page.Order) error {
	port, err := s.portOf(o.Values)
	if err != nil {
		return err
	}
	gates, err := port.GatesFor(ctx, o.Values.Get("reason"))
	if err != nil {
		return err
	}
	intent := relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why, FromStore: o.Values.Get("store") != ""}
	total, done := int64(len(gates)), int64(0)
	err = port.NoteAll(ctx, gates, intent, func(relay.Gate) { done++; o.Progress(done, total) })
	s.reader.refresh()
	if err != nil {
		return err
	}
	o.Say(fmt.Sprintf("Noted: retry of %d keys. Their processes start within seconds; the list of parked keys shows the rest.", done))
	rest := url.Values{}
	for _, name := range []string{"consumer", "reason"} {
		if value := o.Values.Get(name); value != "" {
			rest.Set(name, value)
		}
	}
	to := url.URL{Path: "/parked", RawQuery: rest.Encode()}
	o.Next("See the remaining keys", to.String())
	return nil
}

func (s *Operations) previewSkip(ctx context.Context, q url.Values) (*page.Preview, error) {
	key, event := q.Get("key"), q.Get("event")
	port, err := s.portOf(q)
	if err != nil {
		return nil, err
	}
	if err := port.FirstInLine(ctx, key, event); err != nil {
		return nil, notParkedRefusal(key, err)
	}
	found, err := port.ParkedKey(ctx, key, 2)
	if err != nil {
		return nil, notParkedRefusal(key, err)
	}
	if len(found.Line) == 0 || found.Line[0].ID != event { // it has left since
		return nil, &page.Refusal{
			Status: http.StatusConflict, Title: "The event has left", Detail: "Event " + event + " is not the first in line of key " + key + " any more.", Next: "See the key.",
		}
	}
	first := found.Line[0]
	done, gap := "sent", "Consumers will find a gap in the sequence."
	if q.Get("consumer") != "" {
		done, gap = "handled", "The effect of the event is missing in the consumer."
	}
	return &page.Preview{
		Summary: fmt.Sprintf("The event is never %s. The %d later events are %s in order.", done, found.Gate.Events-1, done),
		Facts: keyFacts(q,
			page.Fact{Name: "event", Value: event},
			page.Fact{Name: "action", Value: first.Action},
			page.Fact{Name: "sequence", Value: fmt.Sprint(first.Sequence)},
			page.Fact{Name: "error", Value: first.Error},
		),
		Warning: gap + " The document stays in the record of the key.",
		Typed:   event[:min(8, len(event))], Stamp: found.Gate.Version,
	}, nil
}

func (s *Operations) doSkip(ctx context.Context, o *page.Order) error {
	key, event := o.Values.Get("key"), o.Values.Get("event")
	port, err := s.portOf(o.Values)
	if err != nil {
		return err
	}
	if err := port.FirstInLine(ctx, key, event); err != nil {
		return notParkedRefusal(key, err)
	}
	return s.noteAndWait(ctx, port, o, key, relay.Intent{Verb: relay.VerbSkip, Event: event, By: o.Who, Note: o.Why})
}
