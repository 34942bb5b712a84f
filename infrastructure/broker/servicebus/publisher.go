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

// Publisher publishes events to one topic or queue. It is safe for concurrent use. Concurrent calls
// must not contain the same key.
type Publisher struct {
	link     link
	slots    chan struct{} // one held for each batch in flight, over all calls
	source   any           // CloudEvents source
	opts     PublisherOptions
	unpacked atomic.Bool // the entity refuses batches of several keys
}

var _ relay.Publisher = (*Publisher)(nil)

// PublisherOptions are the options of NewPublisher.
type PublisherOptions struct {
	// PackKeys puts several keys into one batch, which is much faster if keys have few events. An
	// entity with partitions refuses such batches. The publisher then sends one batch per key from
	// that time on.
	PackKeys bool
	// Sent, if set, is called after every batch, and after a call that could not open the link. It
	// must return quickly and be safe for concurrent use.
	Sent func(ctx context.Context, r relay.BatchReport)
	// Source is the CloudEvents source. Default: "/" and the name of the entity.
	Source string
	// Logger receives changes of PackKeys and replaced links. Default: discarded.
	Logger *slog.Logger

	limits limits
}

// limits bound a publisher. Tests set them; zero means the default.
type limits struct {
	inFlight      int           // batches
	packMessages  int           // messages of a call to pack before a further batch is sent concurrently
	batchMessages int           // messages of a batch
	sendTimeout   time.Duration // of one send
}

// NewPublisher returns a publisher to a topic or queue. It does no I/O; the first use connects. Close
// closes the link and not the client.
func NewPublisher(client *Client, entity string, opts *PublisherOptions) (*Publisher, error) {
	if client == nil || entity == "" {
		return nil, errors.New("service bus publisher: a client and the name of a topic or queue are required")
	}
	given := *cmp.Or(opts, &PublisherOptions{})
	given.Logger = cmp.Or(given.Logger, slog.New(slog.DiscardHandler))
	return newPublisher(newSenderLink(client, entity, given.Logger), entity, &given), nil
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

// publish returns the results of groups in their order.
func (p *Publisher) publish(ctx context.Context, groups []relay.Group) []relay.KeyError {
	c := &call{publisher: p, groups: groups, results: make([]relay.KeyError, len(groups))}
	chunks := c.split(p.opts.PackKeys && !p.unpacked.Load())
	var senders sync.WaitGroup
	for range min(len(chunks), cap(p.slots)) {
		senders.Go(func() { (&sender{call: c}).send(ctx, chunks) })
	}
	senders.Wait()
	return c.results
}

// Open connects as the first Publish would, to check that the broker is available and that the client
// may send. Its error is a *relay.Error.
func (p *Publisher) Open(ctx context.Context) error {
	_, err := p.connect(ctx)
	return err
}

// connect opens the link. Its timeout is longer than that of a send, because it takes about 10 round
// trips.
func (p *Publisher) connect(ctx context.Context) (maxBatch int, err error) {
	opening, cancel := context.WithTimeoutCause(ctx, wire.ConnectTimeout, errUnanswered)
	defer cancel()
	if maxBatch, err = p.link.open(opening); err != nil {
		return 0, classify(ctx, opening, err)
	}
	return maxBatch, nil
}

// Close closes the link. Running calls of Publish fail.
func (p *Publisher) Close(ctx context.Context) error {
	if err := p.link.close(ctx); err != nil {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}
