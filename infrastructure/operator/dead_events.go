package operator

import (
	"context"
	"fmt"
	"slices"

	"feedbox/application/relay"
)

// deadEvents lists the dead letters of all consumers as events. Only this list has the status dead,
// because the other lists would have to read the queues of all consumers for each page, and some brokers
// cannot show a letter without locking it. No broker returns the newest letters first, so it sorts the
// oldest maxExamined of each consumer and names the consumers that have more. The continuation is a number
// of events.
func (o *Operator) deadEvents(ctx context.Context, f EventFilter) (page EventPage, err error) {
	from := 0
	if err := relay.Resume(f.Continuation, &from); err != nil {
		return page, err
	}
	consumers, err := o.Consumers(ctx, f.Management)
	if err != nil {
		return page, err
	}
	var all EventPage
	for _, consumer := range consumers {
		letters, more, err := o.ReadDeadLetters(ctx, consumer, maxExamined)
		if err != nil {
			return page, err
		}
		if more {
			page.Omitted = append(page.Omitted, consumer)
		}
		for i := range letters {
			all.take(&f, []ListedEvent{deadEvent(consumer, &letters[i])})
		}
	}
	slices.SortStableFunc(all.Events, func(a, b ListedEvent) int { return b.DeadAt.Compare(a.DeadAt) })
	from = min(max(from, 0), len(all.Events))
	until := min(from+f.Limit, len(all.Events))
	page.Events, page.Examined = all.Events[from:until], all.Examined
	if until < len(all.Events) {
		page.Continuation = relay.Continue(until)
	}
	return page, nil
}

func deadEvent(consumer string, l *DeadLetter) ListedEvent {
	e := ListedEvent{Status: StatusDead, DeadAt: l.EnqueuedAt, Consumer: consumer, Letter: l.ID}
	e.ID, e.Key, e.Action, e.Sequence, e.Body = l.Event, l.Key, l.Action, l.Sequence, l.Body
	e.Trouble = fmt.Sprintf("consumer %s: %s", consumer, l.Reason)
	if l.Description != "" {
		e.Trouble += ": " + l.Description
	}
	return e
}
