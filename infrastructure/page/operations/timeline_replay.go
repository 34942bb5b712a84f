package operations

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"feedbox/application/relay"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// timelineActs returns the act that sends the events of a key again.
func (s *Operations) timelineActs() []page.Act {
	return []page.Act{{Path: "replay", Title: "Send the events of a key again", Verb: "Send them again", Preview: s.previewKeyReplay, Do: s.doKeyReplay}}
}

func (s *Operations) previewKeyReplay(ctx context.Context, q url.Values) (*page.Preview, error) {
	key := q.Get("key")
	plan, err := s.o.Port.PlanKeyReplay(ctx, key, s.o.Window)
	if err != nil {
		return nil, err
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("This process sends the %d stored events of the key again, in order, with their original message ids.", plan.Events),
		Facts: []page.Fact{
			{Name: "key", Value: key},
			{Name: "events", Value: fmt.Sprint(plan.Events)},
			{Name: "dropped by the topic", Value: fmt.Sprintf("%d, committed within its duplicate window of %s", plan.Covered, s.o.Window)},
			{Name: "consumers may see twice", Value: fmt.Sprint(plan.Events - plan.Covered)},
		},
		Stamp: replayStamp(plan),
	}
	switch {
	case plan.Events == 0:
		p.Blocked = "The key has no stored events: there is no such aggregate, or they have expired."
	case len(plan.Missing) > 0:
		p.Blocked = fmt.Sprintf("The sequences %v are missing, so the events cannot be sent in order.", plan.Missing[:min(10, len(plan.Missing))])
	}
	return p, nil
}

// replayStamp identifies the events of a plan, so that a new event makes a preview stale.
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
	o.Next("See the timeline of the key", "/life/"+url.PathEscape(key))
	return nil
}
