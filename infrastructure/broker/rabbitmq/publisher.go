package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// Publisher sends events to an exchange. It is safe for concurrent use; two concurrent calls
// must not carry the same key.
type Publisher struct {
	client   *Client
	exchange string
	opts     PublisherOptions
	channels chan *channel // as many as may be in use; nil for one that is not open
}

var _ relay.Publisher = (*Publisher)(nil)

// PublisherOptions are the choices of NewPublisher. Zero means the default.
type PublisherOptions struct {
	// Channels is how many channels messages go over. Default 16.
	Channels int
	// Window is how many messages of a channel may be unconfirmed at a time. Default 256.
	Window int
	// SendTimeout is how long the confirmation of a message may take. Default 15 s.
	SendTimeout time.Duration
	// MaxMessageBytes is the largest body that the broker takes (its max_message_size). Default
	// 128 MiB, as the broker's.
	MaxMessageBytes int
	// Source is the app id of messages, at most 255 bytes. Default: "/" and the name of the
	// exchange.
	Source string
	// Sent, if set, is told of the messages that went over one channel in one call, until the
	// last was confirmed or given up. It must be quick and safe for concurrent use.
	Sent func(ctx context.Context, r relay.BatchReport)
}

// NewPublisher returns a publisher to a direct exchange, which has to exist (Declare makes it).
// It does no I/O; the first use connects. The client stays the caller's.
func NewPublisher(client *Client, exchange string, opts *PublisherOptions) (*Publisher, error) {
	if client == nil || exchange == "" {
		return nil, errors.New("rabbitmq publisher: give a client and the name of an exchange")
	}
	p := &Publisher{client: client, exchange: exchange, opts: *cmp.Or(opts, &PublisherOptions{})}
	p.opts.Channels = cmp.Or(p.opts.Channels, 16)
	p.opts.Window = cmp.Or(p.opts.Window, 256)
	p.opts.SendTimeout = cmp.Or(p.opts.SendTimeout, 15*time.Second)
	p.opts.MaxMessageBytes = cmp.Or(p.opts.MaxMessageBytes, 128<<20)
	p.opts.Source = cmp.Or(p.opts.Source, "/"+exchange)
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
	faults := make([]relay.KeyError, len(groups))
	var together []int
	var parts [][]int
	for i := range groups {
		if groups[i].Alone {
			parts = append(parts, []int{i}) // it may end its channel
		} else {
			together = append(together, i)
		}
	}
	for beside := min(p.opts.Channels, (len(together)+p.opts.Window-1)/p.opts.Window); beside > 0; beside-- {
		n := (len(together) + beside - 1) / beside
		parts = append(parts, together[:n])
		together = together[n:]
	}
	var sends sync.WaitGroup
	for _, part := range parts {
		sends.Go(func() { p.send(ctx, groups, part, faults) })
	}
	sends.Wait()
	return publish.Failed(faults)
}

// send sends the groups of a part over one channel and notes in faults what became of each.
func (p *Publisher) send(ctx context.Context, groups []relay.Group, part []int, faults []relay.KeyError) {
	s := &sender{publisher: p, groups: groups, faults: faults, returned: make(map[string]bool)}
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
			s.failAll(part, unopened(ctx, err))
			ch = nil
		}
	}
	if ch != nil && !s.run(ctx, ch, part) {
		ch.discard() // confirmations of this call must not meet the next one
		ch = nil
	}
	if p.opts.Sent != nil {
		p.opts.Sent(ctx, publish.Report(faults, part, s.tried, began))
	}
}

// Close closes the channels. Calls of Publish that are under way end first, by ctx at the latest.
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
