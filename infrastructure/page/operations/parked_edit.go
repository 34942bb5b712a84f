package operations

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/page"
)

func (s *Operations) previewEdit(ctx context.Context, q url.Values) (*page.Preview, error) {
	key, event := q.Get("key"), q.Get("event")
	g, err := s.o.Port.Gate(ctx, key)
	if err != nil {
		return nil, notParkedRefusal(key, err)
	}
	m, err := s.o.Port.ReadEditable(ctx, key, event)
	if fault.Is(err, fault.NotFound) {
		return nil, &page.Refusal{Status: http.StatusNotFound, Title: "The event is no longer stored", Detail: "It has expired, or was removed. The parked event can only be sent unchanged, or skipped.", Next: "Go back to the key."}
	}
	if err != nil {
		return nil, err
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("The document replaces the stored one. Then a relay sends the %d waiting events in order, each as currently stored.", g.Events),
		Facts:   []page.Fact{{Name: "key", Value: key}, {Name: "event", Value: event}},
		Stamp:   m.Version, Warning: m.Trouble,
	}
	text := q.Get("document")
	if text == "" {
		text, _ = indented(m.Document)
	} else if trouble := s.o.Port.CheckEdit(key, event, []byte(text)); trouble != "" {
		return nil, &page.Refusal{Status: http.StatusUnprocessableEntity, Title: "The corrected document cannot be sent", Detail: trouble + ". Nothing was stored.", Next: "Go back and correct it; your input is still there."}
	} else {
		p.Warning = ""
	}
	p.Fields = []page.Field{{Name: "document", Label: "The event's document", Kind: "area", Value: text, Required: true, Hint: "Must be JSON. Keep the id and key."}}
	return p, nil
}

func (s *Operations) doEdit(ctx context.Context, o *page.Order) error {
	key, event := o.Values.Get("key"), o.Values.Get("event")
	m, err := s.o.Port.ReadEditable(ctx, key, event)
	if err != nil {
		return err
	}
	if err := s.o.Port.ReplaceEvent(ctx, key, event, []byte(o.Values.Get("document")), m.Version); err != nil {
		return err
	}
	o.Say("The corrected document is stored.")
	return s.noteAndWait(ctx, o, key, relay.Intent{Verb: relay.VerbRetry, By: o.Who, Note: o.Why, FromStore: true})
}
