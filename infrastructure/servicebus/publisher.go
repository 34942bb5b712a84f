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

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
)

// Publisher sends events to one topic or queue. It is safe for concurrent use; two
// concurrent calls must not carry the same key.
type Publisher struct {
	links    []link
	slots    chan struct{} // one held for each batch in flight
	opts     PublisherOptions
	unpacked atomic.Bool // the entity turned out to refuse batches of several keys
}

var _ relay.Publisher = (*Publisher)(nil)

// PublisherOptions are the choices of NewPublisher. Zero means the default.
type PublisherOptions struct {
	// Links is how many AMQP links the batches are spread over. Default 1.
	Links int
	// InFlight is how many batches await the broker's answer at a time, over all
	// calls. Default 64.
	InFlight int

	// PackKeys puts several keys into one batch, which is much faster with few events a
	// key. An entity with partitions refuses such batches; they are then sent again by
	// key, and packing ends.
	PackKeys bool
	// PackMessages is how many messages of a call are packed before another batch is
	// sent beside it. Default 128.
	PackMessages int

	// MaxBatchBytes caps a batch below the limit that the broker tells. Default 1 MiB,
	// which the service holds to even where single messages may be larger.
	MaxBatchBytes int
	// MaxBatchMessages caps the messages of a batch. Default 4,500.
	MaxBatchMessages int
	// SendTimeout bounds one send. Default 15 s; negative: only the call's context does.
	SendTimeout time.Duration
	// ConnectTimeout bounds one try to connect, which a send that needs it waits for
	// first. Default 30 s; negative: only the call's context does.
	ConnectTimeout time.Duration

	// Source is the CloudEvents source attribute, a URI reference. Default "/" and the
	// name of the entity.
	Source string
	// OmitCloudEvents leaves the CloudEvents attributes out. The application properties
	// traceparent, sequence and aggregateVersion are sent anyway.
	OmitCloudEvents bool

	// Sent, if set, is called after every batch. It must be quick and safe for
	// concurrent use.
	Sent func(ctx context.Context, r BatchReport)
	// Logger takes what changes the way of sending. Default: discarded.
	Logger *slog.Logger
}

// BatchReport tells of one batch.
type BatchReport struct {
	Keys, Messages int
	Bytes          int           // encoded; of a message sent alone, those of its body
	Took           time.Duration // until the broker's answer
	Err            error         // nil: accepted
}

// NewPublisher returns a publisher to the entity, a topic or a queue. It does no I/O;
// the first use connects. The client stays the caller's; Close only closes the links.
func NewPublisher(client *azservicebus.Client, entity string, opts *PublisherOptions) (*Publisher, error) {
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("client is nil"))
	}
	if entity == "" {
		errs = append(errs, errors.New("the topic has no name"))
	}
	o, err := opts.withDefaults(entity)
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return nil, fmt.Errorf("service bus publisher: %w", errors.Join(errs...))
	}
	links := make([]link, o.Links)
	for i := range links {
		links[i] = newSenderLink(func() (*azservicebus.Sender, error) { return client.NewSender(entity, nil) })
	}
	return newPublisher(links, o), nil
}

func newPublisher(links []link, o PublisherOptions) *Publisher {
	return &Publisher{links: links, slots: make(chan struct{}, o.InFlight), opts: o}
}

// withDefaults returns a copy with every default filled in.
func (o *PublisherOptions) withDefaults(entity string) (PublisherOptions, error) {
	var d PublisherOptions
	if o != nil {
		d = *o
	}
	var errs []error
	for _, n := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"Links", &d.Links, 1},
		{"InFlight", &d.InFlight, 64},
		{"PackMessages", &d.PackMessages, 128},
		{"MaxBatchBytes", &d.MaxBatchBytes, 1 << 20},
		{"MaxBatchMessages", &d.MaxBatchMessages, 4500},
	} {
		if *n.value = cmp.Or(*n.value, n.standard); *n.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, below 1", n.name, *n.value))
		}
	}
	d.SendTimeout = cmp.Or(d.SendTimeout, 15*time.Second)
	d.ConnectTimeout = cmp.Or(d.ConnectTimeout, 30*time.Second)
	d.Source = cmp.Or(d.Source, "/"+entity)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	return d, errors.Join(errs...)
}

// Publish implements relay.Publisher.
func (p *Publisher) Publish(ctx context.Context, groups []relay.Group) error {
	c := &call{publisher: p, groups: groups, results: make([]relay.KeyError, len(groups))}
	c.plan(p.opts.PackKeys && !p.unpacked.Load())
	var workers sync.WaitGroup
	for i := 1; i < min(len(c.trains), p.opts.InFlight); i++ {
		workers.Go(func() { c.work(ctx) })
	}
	c.work(ctx)
	workers.Wait()
	return c.err()
}

// Close closes the links. Calls of Publish that are under way fail.
func (p *Publisher) Close(ctx context.Context) error {
	var errs []error
	for _, l := range p.links {
		errs = append(errs, l.Close(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}
