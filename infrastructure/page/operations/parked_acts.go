package operations

import (
	"context"
	"errors"
	"fmt"
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

// parkedActs are what becomes of parked keys. The query names the key, or the reason.
func (s *Operations) parkedActs() []page.Act {
	return []page.Act{
		{Path: "retry", Title: "Retry a parked key", Verb: "Retry", Preview: s.previewRetry, Do: s.doRetry},
		{Path: "retry-all", Title: "Retry many keys", Verb: "Retry all of them", Preview: s.previewRetryAll, Do: s.doRetryAll},
		{Path: "skip", Title: "Leave out an event for good", Verb: "Leave it out", Danger: true, Preview: s.previewSkip, Do: s.doSkip},
		{Path: "mend", Title: "Correct an event", Verb: "Store it and retry", Preview: s.previewMend, Do: s.doMend},
	}
}

// notParked says what to do if a key has no gate.
func notParked(key string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return &page.Refusal{
			Status: http.StatusNotFound, Title: "The key is not parked", Detail: key + " flows, or was never seen.",
			Next: "Its life shows what became of its events; the list of parked keys shows those that wait.",
		}
	}
	return err
}

// gateStamp changes with whatever an operator decides by.
func gateStamp(g relay.Gate) string { return g.Version }

func (s *Operations) previewRetry(ctx context.Context, q url.Values) (*page.Preview, error) {
	key := q.Get("key")
	g, err := s.o.Port.Gate(ctx, key)
	if err != nil {
		return nil, notParked(key, err)
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("A relay sends the %d events that wait, in their order, as they were parked. Then the key flows again.", g.Events),
		Facts: []page.Fact{
			{Name: "key", Value: key},
			{Name: "events that wait", Value: fmt.Sprint(g.Events)},
			{Name: "parked for", Value: g.Closing.Reason},
			{Name: "tried so far", Value: fmt.Sprint(g.Attempts)},
		},
		Stamp:  gateStamp(g),
		Fields: []page.Field{{Name: "store", Label: "Send each event as it stands in the store now", Kind: "check", Value: q.Get("store"), Hint: "after the event was corrected there"}},
	}
	if q.Get("store") == "" {
		return p, nil
	}
	c, err := s.o.Port.CompareParked(ctx, key)
	if err != nil {
		return nil, err
	}
	p.Summary = fmt.Sprintf("A relay sends the %d events that wait, in their order, each as it stands in the store now. Then the key flows again.", g.Events)
	p.Facts = append(p.Facts,
		page.Fact{Name: "compared with the store", Value: fmt.Sprintf("the first %d", c.Events)},
		page.Fact{Name: "differ", Value: listed(c.Differ)}, page.Fact{Name: "no longer stored", Value: listed(c.Gone)})
	if len(c.Gone) > 0 {
		p.Warning = "What is no longer stored is sent as it was parked."
	}
	return p, nil
}

func listed(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", len(ids), strings.Join(ids[:min(3, len(ids))], ", "))
}

func (s *Operations) doRetry(ctx context.Context, o *page.Order) error {
	key := o.Values.Get("key")
	return s.want(ctx, o, key, relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why, FromStore: o.Values.Get("store") != ""})
}

// waitForRelay bounds how long an act waits for a relay to do what was noted.
const (
	waitForRelay = time.Minute
	gatePoll     = 300 * time.Millisecond
)

// want notes an intent and waits until a relay has carried it out.
func (s *Operations) want(ctx context.Context, o *page.Order, key string, intent relay.Intent) error {
	before, err := s.o.Port.Note(ctx, key, intent)
	if err != nil {
		return notParked(key, err)
	}
	o.Say(fmt.Sprintf("Noted: %s of %s. %d events wait.", intent.Verb, key, before.Events))
	o.Next("See the key", "/parked/keys/"+url.PathEscape(key))
	defer func() { s.keys.forget(); s.lives.forget(); s.reader.nudge() }()
	bounded, cancel := context.WithTimeout(ctx, waitForRelay)
	defer cancel()
	for {
		g, err := s.o.Port.Gate(bounded, key)
		switch {
		case fault.Is(err, fault.NotFound):
			o.Progress(before.Events, before.Events)
			o.Say("Done: the events were sent in their order, and the key flows again.")
			o.Next("See the life of the key", "/life/"+url.PathEscape(key))
			return nil
		case bounded.Err() != nil: // said below
		case err != nil:
			return err
		case g.Intent == nil && g.Attempts > before.Attempts:
			return &page.Refusal{Status: http.StatusConflict, Title: "The key stays parked", Detail: g.Error, Next: "See what waits, correct it in the store, and retry from there."}
		case g.Intent == nil && intent.Verb == relay.VerbSkip && g.Events < before.Events && g.Error == "":
			o.Progress(before.Events-g.Events, before.Events)
		default:
			o.Progress(max(0, before.Events-g.Events), before.Events)
		}
		select {
		case <-time.After(gatePoll):
		case <-bounded.Done():
			if ctx.Err() != nil {
				return errors.New("this process ends; what is wanted stays noted")
			}
			o.Say(fmt.Sprintf("No relay was done within %s. What is wanted stays noted.", waitForRelay))
			return nil
		}
	}
}

func (s *Operations) previewRetryAll(ctx context.Context, q url.Values) (*page.Preview, error) {
	gates, err := s.o.Port.GatesFor(ctx, q.Get("reason"))
	if err != nil {
		return nil, err
	}
	reasons := operator.Reasons(gates)
	var events int64
	for _, r := range reasons {
		events += r.Events
	}
	p := &page.Preview{
		Summary:  fmt.Sprintf("%d keys with %d events are sent, each key in its order. Keys do not wait for each other.", len(gates), events),
		Facts:    []page.Fact{{Name: "keys", Value: fmt.Sprint(len(gates))}, {Name: "events", Value: fmt.Sprint(events)}},
		Template: "reasons.html", Data: reasons, Stamp: fmt.Sprint(len(gates), events),
		Fields: []page.Field{{Name: "store", Label: "Send each event as it stands in the store now", Kind: "check", Value: q.Get("store"), Hint: "after the events were corrected there"}},
	}
	if len(gates) == 0 {
		p.Blocked = "No key is parked for that."
	}
	if len(gates) > 1 {
		p.Typed = fmt.Sprint(len(gates))
	}
	return p, nil
}

func (s *Operations) doRetryAll(ctx context.Context, o *page.Order) error {
	gates, err := s.o.Port.GatesFor(ctx, o.Values.Get("reason"))
	if err != nil {
		return err
	}
	intent := relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why, FromStore: o.Values.Get("store") != ""}
	total, done := int64(len(gates)), int64(0)
	err = s.o.Port.NoteAll(ctx, gates, intent, func(relay.Gate) { done++; o.Progress(done, total) })
	s.reader.nudge()
	if err != nil {
		return err
	}
	o.Say(fmt.Sprintf("Noted: retry of %d keys. Relays take them up within seconds; the list of parked keys shows what is left.", done))
	to := "/parked"
	if reason := o.Values.Get("reason"); reason != "" {
		to += "?reason=" + url.QueryEscape(reason)
	}
	o.Next("See what is left", to)
	return nil
}

func (s *Operations) previewSkip(ctx context.Context, q url.Values) (*page.Preview, error) {
	key, event := q.Get("key"), q.Get("event")
	if err := s.o.Port.FirstInLine(ctx, key, event); err != nil {
		return nil, notParked(key, err)
	}
	found, err := s.o.Port.ParkedKey(ctx, key, 2)
	if err != nil {
		return nil, notParked(key, err)
	}
	first := found.Line[0]
	return &page.Preview{
		Summary: fmt.Sprintf("The event is never sent. The %d events behind it are, in their order.", found.Gate.Events-1),
		Facts: []page.Fact{
			{Name: "key", Value: key},
			{Name: "event", Value: event},
			{Name: "action", Value: first.Action},
			{Name: "sequence", Value: fmt.Sprint(first.Sequence)},
			{Name: "error", Value: first.Error},
		},
		Warning: "Consumers will find a gap in the sequence. The document stays in the record of the key.",
		Typed:   event[:min(8, len(event))], Stamp: gateStamp(found.Gate),
	}, nil
}

func (s *Operations) doSkip(ctx context.Context, o *page.Order) error {
	key, event := o.Values.Get("key"), o.Values.Get("event")
	if err := s.o.Port.FirstInLine(ctx, key, event); err != nil {
		return notParked(key, err)
	}
	return s.want(ctx, o, key, relay.Intent{Verb: relay.VerbSkip, Event: event, By: o.Who, Note: o.Why})
}

func (s *Operations) previewMend(ctx context.Context, q url.Values) (*page.Preview, error) {
	key, event := q.Get("key"), q.Get("event")
	g, err := s.o.Port.Gate(ctx, key)
	if err != nil {
		return nil, notParked(key, err)
	}
	m, err := s.o.Port.ReadMendable(ctx, key, event)
	if fault.Is(err, fault.NotFound) {
		return nil, &page.Refusal{Status: http.StatusNotFound, Title: "The event is no longer stored", Detail: "It has expired, or was removed. What was parked can only be sent as it is, or left out.", Next: "Go back to the key."}
	}
	if err != nil {
		return nil, err
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("The document takes the place of the stored one. Then a relay sends the %d events that wait, in their order, each as it stands in the store.", g.Events),
		Facts:   []page.Fact{{Name: "key", Value: key}, {Name: "event", Value: event}},
		Stamp:   m.Version, Warning: m.Trouble,
	}
	text := q.Get("document")
	if text == "" {
		text, _ = pretty(m.Document)
	} else if trouble := s.o.Port.CheckMended(key, event, []byte(text)); trouble != "" {
		return nil, &page.Refusal{Status: http.StatusUnprocessableEntity, Title: "The corrected document cannot be sent", Detail: trouble + ". Nothing was stored.", Next: "Go back and correct it; what you typed is still there."}
	} else {
		p.Warning = ""
	}
	p.Fields = []page.Field{{Name: "document", Label: "The event's document", Kind: "area", Value: text, Required: true, Hint: "Keep its id and key. It must be JSON."}}
	return p, nil
}

func (s *Operations) doMend(ctx context.Context, o *page.Order) error {
	key, event := o.Values.Get("key"), o.Values.Get("event")
	m, err := s.o.Port.ReadMendable(ctx, key, event)
	if err != nil {
		return err
	}
	if err := s.o.Port.Mend(ctx, key, event, []byte(o.Values.Get("document")), m.Version); err != nil {
		return err
	}
	o.Say("The corrected document is stored.")
	return s.want(ctx, o, key, relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why, FromStore: true})
}

// lifeActs send events of a key again.
func (s *Operations) lifeActs() []page.Act {
	return []page.Act{{Path: "replay", Title: "Send the events of a key again", Verb: "Send them again", Preview: s.previewKeyReplay, Do: s.doKeyReplay}}
}

func (s *Operations) previewKeyReplay(ctx context.Context, q url.Values) (*page.Preview, error) {
	key := q.Get("key")
	plan, err := s.o.Port.PlanKeyReplay(ctx, key, s.o.Window)
	if err != nil {
		return nil, err
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("The %d stored events of the key are sent again, in their order, from here, with the message ids they always had.", plan.Events),
		Facts: []page.Fact{
			{Name: "key", Value: key},
			{Name: "events", Value: fmt.Sprint(plan.Events)},
			{Name: "the topic drops", Value: fmt.Sprintf("%d, committed within its duplicate window of %s", plan.Covered, s.o.Window)},
			{Name: "consumers may see twice", Value: fmt.Sprint(plan.Events - plan.Covered)},
		},
		Stamp: replayStamp(plan),
	}
	switch {
	case plan.Events == 0:
		p.Blocked = "The key has no stored events: there is no such aggregate, or they have expired."
	case len(plan.Missing) > 0:
		p.Blocked = fmt.Sprintf("Events are missing in the middle, sequences %v. Nothing can be sent in order.", plan.Missing[:min(10, len(plan.Missing))])
	}
	return p, nil
}

func replayStamp(plan *operator.KeyReplay) string {
	if len(plan.Messages) == 0 {
		return ""
	}
	return fmt.Sprint(plan.Events, " ", slices.MaxFunc(plan.Messages, func(a, b relay.Message) int { return int(a.Sequence - b.Sequence) }).ID)
}

func (s *Operations) doKeyReplay(ctx context.Context, o *page.Order) error {
	key := o.Values.Get("key")
	plan, err := s.o.Port.PlanKeyReplay(ctx, key, s.o.Window)
	if err != nil {
		return err
	}
	total, done := int64(len(plan.Messages)), int64(0)
	if err := s.o.Port.SendKey(ctx, plan, func(n int) { done += int64(n); o.Progress(done, total) }); err != nil {
		return err
	}
	o.Say(fmt.Sprintf("Sent: %d events.", total))
	o.Next("See the life of the key", "/life/"+url.PathEscape(key))
	return nil
}
