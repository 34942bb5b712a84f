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

// Topics publishes events to several topics by their actions, and by their keys (Shard). It is safe for
// concurrent use.
//
// The messages of a key keep their order across topics. Consecutive messages of one topic are sent
// together, and those of the next topic after they were accepted.
type Topics struct {
	shards   []*Publisher // of events without an entry in byAction; at least one
	byAction map[string]*Publisher
	byName   map[string]*Publisher // all publishers
}

var _ relay.Publisher = (*Topics)(nil)

// NewTopics returns a publisher that sends events with an action in byAction to that topic, and all other
// events to topic. Every topic has the same options.
func NewTopics(client *Client, topic string, byAction map[string]string, opts *PublisherOptions) (*Topics, error) {
	return newTopics(client, []Shard{{Name: topic, Topic: topic}}, byAction, opts)
}

// newTopics is NewTopics with several shards in the place of topic. The client of a shard is the given one
// by default.
func newTopics(client *Client, shards []Shard, byAction map[string]string, opts *PublisherOptions) (*Topics, error) {
	t := &Topics{byAction: map[string]*Publisher{}, byName: map[string]*Publisher{}}
	several := len(shards)+len(byAction) > 1
	open := func(name string) (_ *Publisher, err error) {
		if t.byName[name] == nil {
			t.byName[name], err = NewPublisher(client, name, reportAs(name, several, opts))
		}
		return t.byName[name], err
	}
	var err error
	for _, s := range shards {
		p, err := NewPublisher(cmp.Or(s.Client, client), s.Topic, reportAs(s.Name, several, opts))
		if err != nil {
			return nil, err
		}
		name := s.Topic
		if cmp.Or(s.Client, client) != client {
			name = "@" + s.Name // no topic of this namespace
		}
		t.shards, t.byName[name] = append(t.shards, p), p
	}
	for action, name := range byAction {
		if t.byAction[action], err = open(name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Publish implements relay.Publisher.
func (t *Topics) Publish(ctx context.Context, groups []relay.Group) error {
	results := make([]relay.KeyError, len(groups)) // by group, updated after each round
	for runs := t.next(groups, results); len(runs) > 0; runs = t.next(groups, results) {
		var topics sync.WaitGroup
		for topic, r := range runs {
			topics.Go(func() {
				for i, k := range topic.publish(ctx, r.groups) {
					results[r.indexes[i]].Sent += k.Sent
					results[r.indexes[i]].Err = k.Err
				}
			})
		}
		topics.Wait()
	}
	return publish.Failed(results)
}

// run contains the next messages for one topic: the first remaining messages of some groups.
type run struct {
	indexes []int // of the groups in the call
	groups  []relay.Group
}

// next returns the next run of each topic. It skips groups that have failed.
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
		r.indexes, r.groups = append(r.indexes, g), append(r.groups, part)
	}
	return runs
}

func (t *Topics) of(m relay.Message) *Publisher {
	return cmp.Or(t.byAction[m.Action], t.shards[shardOf(m.Key, len(t.shards))])
}

// Close closes the links. Running calls of Publish fail.
func (t *Topics) Close(ctx context.Context) error {
	var errs []error
	for _, p := range t.byName {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}
