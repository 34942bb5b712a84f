package servicebus

import (
	"context"
	"fmt"
	"sync/atomic"

	"feedbox/application/relay"
)

// call is one Publish call. Its groups are cut into trains; a train is sent batch by
// batch, trains go beside each other.
type call struct {
	publisher *Publisher
	groups    []relay.Group
	results   []relay.KeyError // by group; written by the worker of its train only
	trains    []train
	next      atomic.Int64          // the first train that no worker has taken
	halted    atomic.Pointer[error] // why nothing more is sent; nil = go on
}

// train is the groups from first up to, not including, end.
type train struct{ first, end int }

// plan cuts the groups into trains: one a key, or with pack one for every PackMessages
// messages. A key is never cut, so its batches follow each other.
func (c *call) plan(pack bool) {
	enough := 1
	if pack {
		enough = c.publisher.opts.PackMessages
	}
	t, messages := train{}, 0
	for i := range c.groups {
		t.end = i + 1
		if messages += len(c.groups[i].Messages); messages >= enough {
			c.trains = append(c.trains, t)
			t, messages = train{first: t.end, end: t.end}, 0
		}
	}
	if t.end > t.first {
		c.trains = append(c.trains, t)
	}
}

// work sends trains until none is left.
func (c *call) work(ctx context.Context) {
	var s sender
	for {
		n := int(c.next.Add(1)) - 1
		if n >= len(c.trains) {
			return
		}
		t := c.trains[n]
		if err := c.enter(ctx); err != nil {
			for g := t.first; g < t.end; g++ {
				c.results[g] = relay.KeyError{Untried: true, Err: err}
			}
			continue
		}
		if s.call == nil {
			s.prepare(c)
		}
		s.link = c.publisher.links[n%len(c.publisher.links)]
		s.send(ctx, t)
		<-c.publisher.slots
	}
}

// enter takes a slot for a batch in flight.
func (c *call) enter(ctx context.Context) error {
	select {
	case c.publisher.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("send: %w", context.Cause(ctx))
	}
}

// err returns what failed, nil if all was accepted.
func (c *call) err() error {
	var failed []relay.KeyError
	for g, r := range c.results {
		if r.Err != nil {
			r.Group = g
			failed = append(failed, r)
		}
	}
	if failed == nil {
		return nil
	}
	return &relay.PublishError{Keys: failed}
}
