package subscriber

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// Processor hands the events of a source without sessions to a Handler, several at a time
// and in no order. It has no inbox: an event that comes again is handled again.
type Processor struct {
	work      handling.Runner
	opts      Options
	connector *connector
}

// NewProcessor returns a processor of source in the namespace. It does no I/O.
func NewProcessor(namespace servicebus.ClientConfig, source Source, handler consumer.Handler, opts *Options) (*Processor, error) {
	p := &Processor{}
	if opts != nil {
		p.opts = *opts
	}
	o := &p.opts
	p.work = handling.Runner{
		Handler: handler, RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, DrainTimeout: o.DrainTimeout, Observe: o.Observe, Log: o.Logger,
	}
	n, err := wire.NewNamespace(wire.Config(namespace))
	if err := errors.Join(err, source.check(), p.opts.complete(), p.work.Init()); err != nil {
		return nil, fmt.Errorf("new processor: %w", err)
	}
	p.connector = newConnector(n, source, p.work.Log)
	return p, nil
}

// Run receives until ctx ends, drains and returns nil. It survives failures of the broker
// and of the handler. Run may be called again after it returned.
func (p *Processor) Run(ctx context.Context) error {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.connector.Reset(ctx)
		for failures := 0; ctx.Err() == nil; {
			received, err := p.receive(ctx, working)
			if ctx.Err() != nil {
				return
			}
			if failures++; received {
				failures = 1
			}
			p.work.Log.WarnContext(ctx, "receiving failed", "source", p.connector.source, "error", err, "failures", failures)
			handling.Wait(ctx, ctx, p.work.Backoff(failures))
		}
	}()
	p.work.Drain(ctx, done, cancel)
	return nil
}

// receive serves one link until it or ctx ends, and reports whether anything came by it.
func (p *Processor) receive(ctx, working context.Context) (received bool, err error) {
	conn, err := p.connector.Get(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if isBroken(err) {
			p.connector.Drop(ctx, conn)
		}
	}()
	l, err := conn.attach(ctx, &amqp.ReceiverOptions{SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), Credit: -1})
	if err != nil {
		return false, fmt.Errorf("attach: %w", err)
	}
	defer l.detach(ctx) //nolint:errcheck // what is not settled comes again
	if err := l.IssueCredit(uint32(p.opts.Prefetch)); err != nil {
		return false, err
	}
	var handlers sync.WaitGroup
	defer p.giveBack(ctx, l)
	defer handlers.Wait()
	permits := make(chan struct{}, p.opts.Concurrency)
	var used atomic.Int64 // messages dealt with: the broker may send as many again
	atOnce := int64(max(1, min(p.opts.Prefetch-p.opts.Concurrency, p.opts.Prefetch/2)))
	for {
		m, err := l.Receive(ctx, nil)
		if err != nil {
			return received, err
		}
		received = true
		handlers.Go(func() {
			p.deliver(ctx, working, l, m, permits)
			if n := used.Add(1); n >= atOnce && used.CompareAndSwap(n, 0) {
				_ = l.IssueCredit(uint32(n)) // fails only beyond a limit that Prefetch is far below
			}
		})
	}
}

// deliver deals with one message.
func (p *Processor) deliver(ctx, working context.Context, l *link, m *amqp.Message, permits chan struct{}) {
	locked, lose := context.WithCancelCause(working)
	defer lose(nil)
	lock := renewal{term: lockTerm(m), lost: lose, log: p.work.Log, of: "message"}
	lock.renew = func(ctx context.Context) error { return l.renewLock(ctx, m) }
	lock.start(locked)
	defer lock.end()
	select {
	case permits <- struct{}{}:
	case <-ctx.Done():
		p.release(ctx, l, m)
		return
	case <-locked.Done():
		return
	}
	out := consumer.Outcome{Event: newEvent(keyOf(m), m)}
	out.Err = p.work.Handle(locked, out.Event)
	<-permits
	if out.Err != nil && !handling.IsFinal(out.Err) {
		handling.Wait(ctx, locked, p.work.Backoff(out.Event.DeliveryCount))
	}
	patience, cancel := bounded(locked)
	defer cancel()
	settle(patience, l.Receiver, m, &out)
	p.work.Observe(locked, out)
}

// giveBack returns what the broker has sent and nobody handles: without a session it is
// locked by itself, and closing the link would leave it so.
func (p *Processor) giveBack(ctx context.Context, l *link) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if l.DrainCredit(ctx, nil) != nil {
		return // the link has ended
	}
	for m := l.Prefetched(); m != nil; m = l.Prefetched() {
		p.release(ctx, l, m)
	}
}

func (p *Processor) release(ctx context.Context, l *link, m *amqp.Message) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_ = l.ReleaseMessage(ctx, m) // else its lock expires
}
