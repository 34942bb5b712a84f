package servicebus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

// Publisher sends events to one topic or queue. It is safe for concurrent use; two
// concurrent calls must not carry the same key.
type Publisher struct {
	link     link
	slots    chan struct{} // one held for each batch in flight, over all calls
	source   any           // the CloudEvents attribute
	opts     PublisherOptions
	unpacked atomic.Bool // the entity turned out to refuse batches of several keys
}

var _ relay.Publisher = (*Publisher)(nil)

// PublisherOptions are the choices of NewPublisher.
type PublisherOptions struct {
	// PackKeys puts several keys into one batch, which is much faster with few events a
	// key. An entity with partitions refuses such batches; they are then sent again by
	// key, and packing ends.
	PackKeys bool
	// Sent, if set, is called after every batch. It must be quick and safe for
	// concurrent use.
	Sent func(ctx context.Context, r relay.BatchReport)
	// Source is the CloudEvents attribute of that name. Default: "/" and the name of the
	// entity.
	Source string
	// Logger takes what changes the way of sending. Default: discarded.
	Logger *slog.Logger

	limits limits
}

// limits of a publisher. Tests set some; zero means the usual one.
type limits struct {
	inFlight      int           // batches that await the broker's answer
	packMessages  int           // messages of a call that are packed before another batch is sent beside
	batchMessages int           // messages of a batch
	sendTimeout   time.Duration // of one send
}

// NewPublisher returns a publisher to the entity, a topic or a queue. It does no I/O;
// the first use connects. The client stays the caller's; Close only closes the link.
func NewPublisher(client *Client, entity string, opts *PublisherOptions) (*Publisher, error) {
	if client == nil || entity == "" {
		return nil, errors.New("service bus publisher: give a client and the name of a topic or queue")
	}
	return newPublisher(newSenderLink(client, entity), entity, opts), nil
}

func newPublisher(link link, entity string, opts *PublisherOptions) *Publisher {
	p := &Publisher{link: link}
	if opts != nil {
		p.opts = *opts
	}
	p.source = cmp.Or(p.opts.Source, "/"+entity)
	p.opts.Logger = cmp.Or(p.opts.Logger, slog.New(slog.DiscardHandler))
	l := &p.opts.limits
	l.inFlight = cmp.Or(l.inFlight, 64)
	l.packMessages = cmp.Or(l.packMessages, 128)
	l.batchMessages = cmp.Or(l.batchMessages, 4500)
	l.sendTimeout = cmp.Or(l.sendTimeout, 15*time.Second)
	p.slots = make(chan struct{}, l.inFlight)
	return p
}

// Publish implements relay.Publisher.
func (p *Publisher) Publish(ctx context.Context, groups []relay.Group) error {
	return publish.Failed(p.publish(ctx, groups))
}

// publish returns the result of each of groups.
func (p *Publisher) publish(ctx context.Context, groups []relay.Group) []relay.KeyError {
	c := &call{publisher: p, groups: groups, results: make([]relay.KeyError, len(groups))}
	trains := c.plan(p.opts.PackKeys && !p.unpacked.Load())
	var senders sync.WaitGroup
	for range min(len(trains), cap(p.slots)) {
		senders.Go(func() { (&sender{call: c}).send(ctx, trains) })
	}
	senders.Wait()
	return c.results
}

// Open connects, as the first Publish would: it tells whether the broker can be reached
// and lets this client send. Its error is a *relay.Error.
func (p *Publisher) Open(ctx context.Context) error {
	_, err := p.connect(ctx)
	return err
}

// connect opens the link. It takes some 10 round trips, so it has a limit of its own.
func (p *Publisher) connect(ctx context.Context) (maxBatch int, err error) {
	opening, cancel := context.WithTimeout(ctx, wire.ConnectTimeout)
	defer cancel()
	if maxBatch, err = p.link.open(opening); err != nil {
		return 0, classify(ctx, opening, err)
	}
	return maxBatch, nil
}

// Close closes the link. Calls of Publish that are under way fail.
func (p *Publisher) Close(ctx context.Context) error {
	if err := p.link.close(ctx); err != nil {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}
