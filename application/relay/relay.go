package relay

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Relay publishes the events of change feed pages. It is safe for concurrent use.
type Relay struct {
	decoder   Decoder
	publisher Publisher
	opts      Options
	pages     sync.Pool  // of *page
	breakers  []*breaker // by shard
	memory    memory
}

// Options are the choices of New. The zero value is usable.
type Options struct {
	// Parked stores refused events and the later events of their keys. Without it Park
	// fails, and a refused event blocks its key.
	Parked ParkedStore
	// Now is the clock of pauses and of parked events. Default time.Now.
	Now func() time.Time
	// Observer receives the events of the relay. Default: none.
	Observer Observer
	// Shards are the names of the parts of the broker that fail independently, such as topics of
	// several namespaces. ShardOf returns the index of the shard of a key, always the same one. It
	// must be safe for concurrent use. Default: one shard without a name.
	Shards  []string
	ShardOf func(key string) int
}

// New returns a relay. decoder and publisher are required.
func New(decoder Decoder, publisher Publisher, opts *Options) (*Relay, error) {
	if decoder == nil || publisher == nil {
		return nil, errors.New("new relay: decoder and publisher are required")
	}
	r := &Relay{decoder: decoder, publisher: publisher}
	if opts != nil {
		r.opts = *opts
	}
	if len(r.opts.Shards) < 2 {
		r.opts.Shards = []string{""}
	}
	if len(r.opts.Shards) > 1 && r.opts.ShardOf == nil {
		return nil, errors.New("new relay: several shards need ShardOf")
	}
	if r.opts.Now == nil {
		r.opts.Now = time.Now //nolint:forbidigo // the default of an option
	}
	r.pages.New = func() any { return new(page) }
	for _, shard := range r.opts.Shards {
		r.breakers = append(r.breakers, &breaker{
			shard: shard, alone: len(r.opts.Shards) == 1,
			now: r.opts.Now, probe: make(chan struct{}, 1), failing: make(map[string]keyFailure),
		})
	}
	r.memory = newMemory()
	return r, nil
}

// Handle publishes the events in changes, which are in the order of the feed. It returns the
// events that were neither accepted by the broker nor parked, in the order of changes. The
// caller may move its checkpoint past all others.
//
// The caller retries the failed events: an Outage or Blocked one not before its NotBefore, a
// Refused one until its attempts are used up, and then calls Park. It may also call Park for one
// that has waited too long while it was Blamed. An accepted event that is
// passed again is sent again with the same message id, and the broker drops the duplicate.
//
// ctx must end before the ownership of the feed range does, because nothing is sent after ctx
// has ended. Concurrent calls must not carry the same key. The documents must not be changed
// until Handle returns.
func (r *Relay) Handle(ctx context.Context, o Ownership, changes []Change) []Failure {
	p := r.pages.Get().(*page)
	defer func() {
		p.reset()
		r.pages.Put(p)
	}()
	p.read(r.decoder, o, changes)
	in, first, err := r.register(ctx, o)
	r.memory.recall(in, p)
	p.arrange()
	r.findMissing(ctx, o, in, p)
	if err != nil {
		p.failAll(err)
	} else {
		followers := r.memory.parkedKeys(p)
		r.publish(ctx, p) // first, because the store of parked events may not answer
		if r.parkFollowers(ctx, p, followers) {
			r.publish(ctx, p)
		}
	}
	notify(ctx, r.opts.Observer.Handled, Summary{Resent: p.resent, First: first, Oldest: p.oldest()})
	r.memory.remember(in, p)
	return p.failures(in)
}
