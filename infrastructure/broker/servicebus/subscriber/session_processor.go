package subscriber

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// SessionProcessor hands the events of a source with sessions to a Handler, those of a
// session in their order.
type SessionProcessor struct {
	work      handling.Runner
	opts      SessionOptions
	connector *connector
	permits   chan struct{} // one for each session that is being handled
	settlers  *settlers     // of the present Run

	mu   sync.Mutex               // guards what follows
	keys map[string]chan struct{} // held sessions; closed when let go
	idle list.List                // of *hold: sessions without messages, the longest first
}

// NewSessionProcessor returns a processor of source in the namespace. It does no I/O.
func NewSessionProcessor(namespace servicebus.ClientConfig, source Source, handler consumer.Handler, opts *SessionOptions) (*SessionProcessor, error) {
	p := &SessionProcessor{keys: make(map[string]chan struct{})}
	if opts != nil {
		p.opts = *opts
	}
	o := &p.opts
	p.work = handling.Runner{
		Handler: handler, RetryDelay: o.RetryDelay, RetryDelayMax: o.RetryDelayMax, DrainTimeout: o.DrainTimeout, Observe: o.Observe, Log: o.Logger,
	}
	n, err := wire.NewNamespace(wire.Config(namespace))
	if err := errors.Join(err, source.check(), p.opts.complete(), p.work.Init()); err != nil {
		return nil, fmt.Errorf("new session processor: %w", err)
	}
	p.connector = newConnector(n, source, p.work.Log)
	p.permits = make(chan struct{}, o.Sessions)
	return p, nil
}

// acceptAtOnce bounds how many sessions are asked for at a time.
const acceptAtOnce = 8

// Run receives until ctx ends, drains and returns nil. It survives failures of the broker
// and of the handler. Run may be called again after it returned.
func (p *SessionProcessor) Run(ctx context.Context) error {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	p.settlers = newSettlers()
	var accepting, holding sync.WaitGroup
	for range min(p.opts.Sessions, acceptAtOnce) {
		accepting.Go(func() { p.accept(ctx, working, &holding) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		accepting.Wait()
		p.mu.Lock()
		held := len(p.keys)
		p.mu.Unlock()
		if c := p.connector.Current(); c != nil && held > 0 { // nobody connects any more
			c.giveUpAccepts(ctx)
		}
		holding.Wait()
		p.settlers.end()
		p.connector.Reset(ctx)
	}()
	p.work.Drain(ctx, done, cancel)
	return nil
}

// accept accepts one session after the other until ctx ends. working is the context of
// handlers and settlements, which outlives ctx by the drain.
func (p *SessionProcessor) accept(ctx, working context.Context, holding *sync.WaitGroup) {
	for failures := 0; p.mayHandleMore(ctx); {
		conn, err := p.connector.Get(ctx)
		var s *accepted
		if err == nil {
			s, err = conn.acceptNext(ctx, p.opts.Prefetch)
		}
		switch {
		case err == nil:
			failures = 0
			holding.Go(func() { p.hold(ctx, working, s) })
		case errors.Is(err, errNoneWaiting):
			failures = 0
		case ctx.Err() == nil:
			failures++
			p.work.Log.WarnContext(ctx, "no session could be accepted", "source", p.connector.source, "error", err, "failures", failures)
			if isBroken(err) {
				p.connector.Drop(ctx, conn)
				if failures == 1 {
					continue // with a new connection
				}
			}
			handling.Wait(ctx, ctx, p.work.Backoff(failures))
		}
	}
}

// mayHandleMore waits until one more session could be handled. It reports false when ctx
// has ended.
func (p *SessionProcessor) mayHandleMore(ctx context.Context) bool {
	select {
	case p.permits <- struct{}{}:
		<-p.permits
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// take makes a key this holder's, once the one before has let go of it. It reports false if
// one of the contexts ends first.
func (p *SessionProcessor) take(ctx, locked context.Context, key string) bool {
	for {
		p.mu.Lock()
		before, ok := p.keys[key]
		if !ok {
			p.keys[key] = make(chan struct{})
		}
		p.mu.Unlock()
		if !ok {
			return true
		}
		select {
		case <-before:
		case <-ctx.Done():
			return false
		case <-locked.Done():
			return false
		}
	}
}

// letGo is the end of a successful take.
func (p *SessionProcessor) letGo(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.keys[key])
	delete(p.keys, key)
}

// rest notes that a session has no messages. If too many have none, the one that has been
// so for longest is given back.
func (p *SessionProcessor) rest(h *hold) (place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.tooMany = make(chan struct{}) // an event may have come first when that of an earlier rest was closed
	place = p.idle.PushBack(h)
	if p.idle.Len() > p.opts.Sessions {
		close(p.idle.Remove(p.idle.Front()).(*hold).tooMany)
	}
	return place
}

// wake is the end of a rest.
func (p *SessionProcessor) wake(place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle.Remove(place)
}
