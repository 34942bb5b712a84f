package servicebus

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// Topics sends events to topics by their subjects. It is safe for concurrent use, as its
// publishers are.
//
// The messages of a key keep their order over all topics: those of one topic that follow
// each other are sent together, and the next topic's are sent once they are accepted.
type Topics struct {
	usual    *Publisher
	byAction map[string]*Publisher
	byName   map[string]*Publisher // all of them
}

var _ relay.Publisher = (*Topics)(nil)

// NewTopics returns a publisher to the usual topic, and to those of byAction for the events
// with these subjects. Options are those of each.
func NewTopics(client *Client, usual string, byAction map[string]string, opts *PublisherOptions) (*Topics, error) {
	t := &Topics{byAction: map[string]*Publisher{}, byName: map[string]*Publisher{}}
	open := func(topic string) (_ *Publisher, err error) {
		if t.byName[topic] == nil {
			t.byName[topic], err = NewPublisher(client, topic, opts)
		}
		return t.byName[topic], err
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
	results := make([]relay.KeyError, len(groups)) // of each group, so far
	for runs := t.next(groups, results); len(runs) > 0; runs = t.next(groups, results) {
		var topics sync.WaitGroup
		for topic, r := range runs {
			topics.Go(func() {
				for i, k := range topic.publish(ctx, r.groups) {
					results[r.of[i]].Sent += k.Sent
					results[r.of[i]].Err = k.Err
				}
			})
		}
		topics.Wait()
	}
	return publish.Failed(results)
}

// run is what one topic gets next: the front of what is left of some groups.
type run struct {
	of     []int // places of the groups in the call
	groups []relay.Group
}

// next returns what the groups give next, by topic. One that failed gives nothing more.
func (t *Topics) next(groups []relay.Group, results []relay.KeyError) map[*Publisher]*run {
	runs := map[*Publisher]*run{}
	for g, part := range groups {
		part.Messages = part.Messages[results[g].Sent:]
		if results[g].Err != nil || len(part.Messages) == 0 {
			continue
		}
		topic := t.of(part.Messages[0])
		elsewhere := func(m relay.Message) bool { return t.of(m) != topic }
		if end := slices.IndexFunc(part.Messages, elsewhere); end > 0 {
			part.Messages = part.Messages[:end]
		}
		r := runs[topic]
		if r == nil {
			r = new(run)
			runs[topic] = r
		}
		r.of, r.groups = append(r.of, g), append(r.groups, part)
	}
	return runs
}

func (t *Topics) of(m relay.Message) *Publisher { return cmp.Or(t.byAction[m.Action], t.usual) }

// Close closes the links. Calls of Publish that are under way fail.
func (t *Topics) Close(ctx context.Context) error {
	var errs []error
	for _, p := range t.byName {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}
