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

// Processor passes the events of a source without sessions to a Handler, in parallel and without order. It
// has no inbox, so a redelivered event is handled again.
type Processor struct {
	runner    handling.Runner
	opts      Options
	connector *connector
}

// NewProcessor returns a processor of a source in the namespace. It does no I/O.
func NewProcessor(namespace servicebus.ClientConfig, source Source, handler consumer.Handler, opts *Options) (*Processor, error) {
	p := &Processor{}
	if opts != nil {
		p.opts = *opts
	}
	o := &p.opts
	p.runner = handling.Runner{
		Source: source.telemetry(), Advise: advise, Handler: handler, RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, DrainTimeout: o.DrainTimeout, Policies: o.Policies,
		Observe: o.Observe, Log: o.Logger, Meters: o.Meters, Tracers: o.Tracers,
	}
	n, err := wire.NewNamespace(wire.Config(namespace))
	if err := errors.Join(err, source.check(), p.opts.complete(), p.runner.Init()); err != nil {
		return nil, fmt.Errorf("new processor: %w", err)
	}
	p.connector = newConnector(n, source, p.runner.Log)
	return p, nil
}

// Run receives events until ctx ends, then drains and returns nil. It retries after failures of the
// broker and of the handler. Run may be called again after it has returned.
func (p *Processor) Run(ctx context.Context) error {
	if p == nil || p.connector == nil {
		return errors.New("subscriber: the Processor is not made by NewProcessor")
	}
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
			p.runner.NotReceived(ctx, string(p.connector.source), err, failures)
			handling.Wait(ctx, ctx, p.runner.Backoff(failures))
		}
	}()
	p.runner.Drain(ctx, done, cancel)
	return nil
}

// receive handles the messages of one link until the link or ctx ends. It reports whether it received any.
func (p *Processor) receive(ctx, working context.Context) (received bool, err error) {
	conn, err := p.connector.Get(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if isBroken(err) || isSilent(err) {
			p.connector.Drop(ctx, conn)
		}
	}()
	attaching, cancel := context.WithTimeout(ctx, wire.ConnectTimeout)
	defer cancel()
	l, err := conn.attach(attaching, &amqp.ReceiverOptions{SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), Credit: -1})
	if err != nil {
		return false, fmt.Errorf("attach: %w", err)
	}
	defer l.detach(ctx) //nolint:errcheck // the broker redelivers unsettled messages
	if err := l.IssueCredit(uint32(p.opts.Prefetch)); err != nil {
		return false, err
	}
	var handlers sync.WaitGroup
	defer p.releasePrefetched(ctx, l)
	defer handlers.Wait()
	permits := make(chan struct{}, p.opts.Concurrency)
	var finished atomic.Int64 // messages since the last credit
	creditBatch := int64(max(1, min(p.opts.Prefetch-p.opts.Concurrency, p.opts.Prefetch/2)))
	for {
		m, err := l.Receive(ctx, nil)
		if err != nil {
			return received, err
		}
		received = true
		handlers.Go(func() {
			p.deliver(ctx, working, l, m, permits)
			if n := finished.Add(1); n >= creditBatch && finished.CompareAndSwap(n, 0) {
				_ = l.IssueCredit(uint32(n)) // only fails above a limit of go-amqp that Prefetch does not reach
			}
		})
	}
}

// deliver handles and settles one message.
func (p *Processor) deliver(ctx, working context.Context, l *link, m *amqp.Message, permits chan struct{}) {
	locked, lose := context.WithCancelCause(working)
	defer lose(nil)
	lock := renewal{duration: lockDuration(m), lost: lose, log: p.runner.Log, target: "message"}
	lock.renew = func(ctx context.Context) error { return l.renewLock(ctx, m) }
	lock.start(locked)
	defer lock.stop()
	p.runner.Received(ctx)
	defer p.runner.Released(ctx)
	out := consumer.Outcome{Event: newEvent(p.connector.source, keyOf(m), m)}
	foreign := isForOtherSubscription(p.connector.source, out.Event)
	if foreign {
		out.Action, out.Verdict = consumer.Dropped, consumer.Stale
	}
	for outages := 1; !foreign && (outages == 1 || handling.IsUnavailable(out.Err)); outages++ {
		select {
		case permits <- struct{}{}:
		case <-ctx.Done():
			p.release(ctx, l, m)
			return
		case <-locked.Done():
			return
		}
		out.Err = p.runner.Handle(locked, out.Event)
		<-permits
		if handling.IsUnavailable(out.Err) { // the broker would count an abandoned message
			if !handling.IsUntried(out.Err) {
				p.runner.Observe(locked, consumer.Outcome{Event: out.Event, Action: consumer.Abandoned, Err: out.Err})
			}
			handling.Wait(ctx, locked, p.runner.BackoffOf(out.Event, outages))
		}
	}
	if reason := p.runner.Refusal(out.Event, out.Err, out.Event.DeliveryCount, 0); reason != nil {
		out.Err = reason
		if p.runner.Drops(out.Event) {
			out.Action = consumer.Dropped
		}
	} else if out.Err != nil && !handling.IsFinal(out.Err) {
		handling.Wait(ctx, locked, p.runner.BackoffOf(out.Event, out.Event.DeliveryCount))
	}
	settling, cancel := bounded(locked)
	defer cancel()
	settle(settling, l.Receiver, m, &out)
	p.runner.Observe(locked, out)
}

// releasePrefetched releases messages that were received and not handled. Without sessions each message
// has its own lock, which detaching the link does not release.
func (p *Processor) releasePrefetched(ctx context.Context, l *link) {
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
	_ = l.ReleaseMessage(ctx, m) // if it fails, the lock expires
}
