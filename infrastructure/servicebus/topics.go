package servicebus

import (
	"context"
	"errors"
	"slices"
	"sync"

	"feedbox/application/relay"
)

// Topics sends events to topics by their subjects. It is safe for concurrent use, as its
// publishers are.
//
// The messages of a key keep their order over all topics: those of one topic that follow
// each other are sent together, and the next topic's are sent once they are accepted.
type Topics struct {
	usual    *Publisher
	byAction map[string]*Publisher
	all      []*Publisher
}

var _ relay.Publisher = (*Topics)(nil)

// NewTopics returns a publisher to the usual topic, and to those of byAction for the events
// with these subjects. Options are those of each.
func NewTopics(client *Client, usual string, byAction map[string]string, opts *PublisherOptions) (*Topics, error) {
	t := &Topics{byAction: make(map[string]*Publisher, len(byAction))}
	byName := map[string]*Publisher{}
	open := func(topic string) (*Publisher, error) {
		if p := byName[topic]; p != nil {
			return p, nil
		}
		p, err := NewPublisher(client, topic, opts)
		if err == nil {
			byName[topic] = p
			t.all = append(t.all, p)
		}
		return p, err
	}
	var err error
	if t.usual, err = open(usual); err != nil {
		return nil, err
	}
	for action, topic := range byAction {
		if t.byAction[action], err = open(topic); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Publish implements relay.Publisher.
func (t *Topics) Publish(ctx context.Context, groups []relay.Group) error {
	if len(t.all) == 1 {
		return t.usual.Publish(ctx, groups)
	}
	sent := make([]int, len(groups)) // messages of each group that are accepted
	var failed []relay.KeyError
	for {
		runs := t.next(groups, sent)
		if len(runs) == 0 {
			break
		}
		for _, f := range t.send(ctx, runs) {
			f.Sent += sent[f.Group]
			failed = append(failed, f)
			sent[f.Group] = len(groups[f.Group].Messages) // what follows is not tried
		}
		for _, run := range runs {
			for i, g := range run.of {
				sent[g] = max(sent[g], run.ends[i])
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	slices.SortFunc(failed, func(a, b relay.KeyError) int { return a.Group - b.Group })
	return &relay.PublishError{Keys: failed}
}

// run is what one topic gets next: of some groups, the messages up to an end.
type run struct {
	publisher *Publisher
	of, ends  []int // groups, and where what they give ends
	groups    []relay.Group
}

// next returns what the groups give next, by topic.
func (t *Topics) next(groups []relay.Group, sent []int) []*run {
	var runs []*run
	byPublisher := map[*Publisher]*run{}
	for g := range groups {
		messages := groups[g].Messages
		if sent[g] >= len(messages) {
			continue
		}
		to, end := t.of(&messages[sent[g]]), sent[g]+1
		for end < len(messages) && t.of(&messages[end]) == to {
			end++
		}
		r := byPublisher[to]
		if r == nil {
			r = &run{publisher: to}
			byPublisher[to] = r
			runs = append(runs, r)
		}
		part := groups[g]
		part.Messages = messages[sent[g]:end]
		r.of, r.ends, r.groups = append(r.of, g), append(r.ends, end), append(r.groups, part)
	}
	return runs
}

func (t *Topics) of(m *relay.Message) *Publisher {
	if p := t.byAction[m.Action]; p != nil {
		return p
	}
	return t.usual
}

// send gives each topic its run. The failures name the groups of the call, and count what
// was sent of the run.
func (t *Topics) send(ctx context.Context, runs []*run) []relay.KeyError {
	errs := make([]error, len(runs))
	var topics sync.WaitGroup
	for i, r := range runs {
		topics.Go(func() { errs[i] = r.publisher.Publish(ctx, r.groups) })
	}
	topics.Wait()
	var failed []relay.KeyError
	for i, r := range runs {
		if errs[i] == nil {
			continue
		}
		if e, ok := errors.AsType[*relay.PublishError](errs[i]); ok {
			for _, k := range e.Keys {
				k.Group = r.of[k.Group]
				failed = append(failed, k)
			}
			continue
		}
		for _, g := range r.of {
			failed = append(failed, relay.KeyError{Group: g, Err: errs[i]})
		}
	}
	return failed
}

// Close closes the links. Calls of Publish that are under way fail.
func (t *Topics) Close(ctx context.Context) error {
	var errs []error
	for _, p := range t.all {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}
