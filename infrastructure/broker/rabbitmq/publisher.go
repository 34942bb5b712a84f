package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// Publisher publishes events to an exchange. It is safe for concurrent use. Concurrent calls must not
// contain the same key.
type Publisher struct {
	client   *Client
	exchange string
	opts     PublisherOptions
	channels chan *channel // pool of PublisherOptions.Channels; nil for a channel that is not open
}

var _ relay.Publisher = (*Publisher)(nil)

// PublisherOptions are the options of NewPublisher. Zero means the default.
type PublisherOptions struct {
	// Channels is the maximum number of channels. Default 16.
	Channels int
	// Window is the maximum number of unconfirmed messages of a channel. Default 256.
	Window int
	// SendTimeout bounds the wait for a confirmation. Default 15 s.
	SendTimeout time.Duration
	// MaxMessageBytes is the largest body that the broker accepts (its max_message_size). Default
	// 128 MiB, the default of the broker.
	MaxMessageBytes int
	// PackKeys packs the events of a call that have one slot into one message, up to 100 events and 64 KiB. That
	// saves most of the broker's work if a call has several events of a slot. An event that shares no message
	// is sent as without the option. All consumers must be able to read such messages (Unpack), and no headers
	// exchange may choose by action: see Packed messages in the documentation of the package.
	PackKeys bool
	// Source is the app id of messages, at most 255 bytes. Default: "/" and the name of the exchange.
	Source string
	// Sent, if set, is called once per call and channel, after the last message was confirmed or has
	// failed. It must return quickly and be safe for concurrent use.
	Sent func(ctx context.Context, r relay.BatchReport)
	// Logger receives replaced connections. Default: discarded.
	Logger *slog.Logger
}

// NewPublisher returns a publisher to a direct exchange, which must exist (see Declare). It does no
// I/O; the first use connects. It does not close the client.
func NewPublisher(client *Client, exchange string, opts *PublisherOptions) (*Publisher, error) {
	if client == nil || exchange == "" {
		return nil, errors.New("rabbitmq publisher: a client and an exchange are required")
	}
	p := &Publisher{client: client, exchange: exchange, opts: *cmp.Or(opts, &PublisherOptions{})}
	p.opts.Channels = cmp.Or(p.opts.Channels, 16)
	p.opts.Window = cmp.Or(p.opts.Window, 256)
	p.opts.SendTimeout = cmp.Or(p.opts.SendTimeout, 15*time.Second)
	p.opts.MaxMessageBytes = cmp.Or(p.opts.MaxMessageBytes, 128<<20)
	p.opts.Source = cmp.Or(p.opts.Source, "/"+exchange)
	p.opts.Logger = cmp.Or(p.opts.Logger, slog.New(slog.DiscardHandler))
	if p.opts.Channels < 0 || p.opts.Window < 0 || p.opts.SendTimeout < 0 || p.opts.MaxMessageBytes < 0 {
		return nil, errors.New("rabbitmq publisher: Channels, Window, SendTimeout and MaxMessageBytes must be positive")
	}
	if len(p.opts.Source) > textLimit {
		return nil, fmt.Errorf("rabbitmq publisher: Source has %d bytes; an app id has at most %d", len(p.opts.Source), textLimit)
	}
	p.channels = make(chan *channel, p.opts.Channels)
	for range p.opts.Channels {
		p.channels <- nil
	}
	return p, nil
}

// Publish implements relay.Publisher.
func (p *Publisher) Publish(ctx context.Context, groups []relay.Group) error {
	results := make([]relay.KeyError, len(groups))
	var shared []int
	var parts [][]int
	for i := range groups {
		if groups[i].Alone {
			parts = append(parts, []int{i}) // it may make the broker close its channel
		} else {
			shared = append(shared, i)
		}
	}
	slots := p.sortBySlot(groups, shared)
	for channels := min(p.opts.Channels, (len(shared)+p.opts.Window-1)/p.opts.Window); channels > 0; channels-- {
		n := (len(shared) + channels - 1) / channels
		parts = append(parts, shared[:n])
		shared = shared[n:]
	}
	var sends sync.WaitGroup
	for _, part := range parts {
		sends.Go(func() { p.send(ctx, groups, slots, part, results) })
	}
	sends.Wait()
	return publish.Failed(results)
}

// sortBySlot sorts groups so that those of one slot are sent together, and returns the slots of all groups. It
// does nothing if groups are not packed.
func (p *Publisher) sortBySlot(groups []relay.Group, shared []int) (slots []int) {
	if !p.opts.PackKeys {
		return nil
	}
	slots = make([]int, len(groups))
	for i := range groups {
		slots[i] = Slot(groups[i].Key)
	}
	slices.SortStableFunc(shared, func(a, b int) int { return slots[a] - slots[b] })
	return slots
}

// send sends the groups of a part on one channel and sets their results.
func (p *Publisher) send(ctx context.Context, groups []relay.Group, slots, part []int, results []relay.KeyError) {
	s := &sender{publisher: p, groups: groups, results: results, returned: make(map[string]bool)}
	s.packer.slots, s.packer.limit = slots, min(maxPackedBytes, p.opts.MaxMessageBytes)
	began := time.Now()
	var ch *channel
	select {
	case ch = <-p.channels:
		defer func() { p.channels <- ch }()
	case <-ctx.Done():
		s.failAll(part, relay.Ended(ctx))
		return
	}
	if ch == nil || ch.IsClosed() {
		var err error
		if ch, err = p.open(ctx); err != nil {
			s.failAll(part, openError(ctx, err))
			ch = nil
		}
	}
	if ch != nil && !s.run(ctx, ch, part) {
		ch.discard() // otherwise the next call would receive confirmations of this one
		ch = nil
	}
	if p.opts.Sent != nil {
		accepted := 0
		for _, g := range part {
			accepted += results[g].Sent
		}
		p.opts.Sent(ctx, publish.Report(results, part, s.attempted, accepted, began))
	}
}

// Close closes the channels after the running calls of Publish have returned, or fails when ctx ends.
func (p *Publisher) Close(ctx context.Context) error {
	for range p.opts.Channels {
		select {
		case ch := <-p.channels:
			if ch != nil {
				ch.discard()
			}
		case <-ctx.Done():
			return fmt.Errorf("close publisher: %w", context.Cause(ctx))
		}
	}
	for range p.opts.Channels {
		p.channels <- nil
	}
	return nil
}
