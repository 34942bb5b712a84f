package subscriber

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// SessionProcessor passes the events of a source with sessions to a Handler, in the order of each session.
type SessionProcessor struct {
	runner    handling.Runner
	opts      SessionOptions
	connector *connector
	parking   *handling.Parking // nil: off
	permits   chan struct{}     // one held for each session that is being handled
	settlers  *settlers         // of the current Run

	mu     sync.Mutex               // guards the fields below
	keys   map[string]chan struct{} // of held sessions; closed on release
	wanted map[string]bool          // parked keys for which an operator has an intent
	idle   list.List                // of *heldSession, longest idle first
}

// NewSessionProcessor returns a processor of a source in the namespace. It does no I/O.
func NewSessionProcessor(namespace servicebus.ClientConfig, source Source, handler consumer.Handler, opts *SessionOptions) (*SessionProcessor, error) {
	p := &SessionProcessor{keys: make(map[string]chan struct{}), wanted: make(map[string]bool)}
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
		return nil, fmt.Errorf("new session processor: %w", err)
	}
	if p.parking, err = handling.NewParking(o.Park, o.ParkedPoll, o.Inbox, &p.runner); err != nil {
		return nil, fmt.Errorf("new session processor: %w", err)
	}
	p.connector = newConnector(n, source, p.runner.Log)
	p.permits = make(chan struct{}, o.Sessions)
	return p, nil
}

// maxAccepts is the maximum number of concurrent requests for sessions.
const maxAccepts = 8

// Run receives events until ctx ends, then drains and returns nil. It retries after failures of the
// broker and of the handler. Run may be called again after it has returned.
func (p *SessionProcessor) Run(ctx context.Context) error {
	if p == nil || p.connector == nil {
		return errors.New("subscriber: the SessionProcessor is not made by NewSessionProcessor")
	}
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	p.settlers = newSettlers()
	var accepting, holding sync.WaitGroup
	for range min(p.opts.Sessions, maxAccepts) {
		accepting.Go(func() { p.accept(ctx, working, &holding) })
	}
	if p.parking != nil {
		accepting.Go(func() {
			p.parking.Poll(ctx, func(ctx context.Context, key string) error { return p.wake(ctx, working, &holding, key) })
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		accepting.Wait()
		p.mu.Lock()
		held := len(p.keys)
		p.mu.Unlock()
		if c := p.connector.Current(); c != nil && held > 0 { // without sessions the connection is closed at once
			c.cancelAccepts(ctx)
		}
		holding.Wait()
		p.settlers.end()
		p.connector.Reset(ctx)
	}()
	p.runner.Drain(ctx, done, cancel)
	return nil
}

// accept accepts sessions, one at a time, until ctx ends. working is the context of handlers and
// settlements, which ends after the drain.
func (p *SessionProcessor) accept(ctx, working context.Context, holding *sync.WaitGroup) {
	for failures := 0; p.awaitPermit(ctx); {
		began := time.Now()
		conn, err := p.connector.Get(ctx)
		var s *accepted
		if err == nil {
			s, err = conn.acceptNext(ctx, p.opts.Prefetch)
		}
		switch {
		case err == nil:
			p.runner.ReceivedAgain(ctx, string(p.connector.source), failures)
			failures = 0
			holding.Go(func() { p.hold(ctx, working, s) })
		case errors.Is(err, errNoSessionAvailable):
			p.runner.ReceivedAgain(ctx, string(p.connector.source), failures)
			failures = 0
			handling.Wait(ctx, ctx, time.Second-time.Since(began)) // the broker may cancel requests at once
		case ctx.Err() == nil:
			failures++
			p.runner.NotReceived(ctx, string(p.connector.source), err, failures)
			if isBroken(err) || isSilent(err) && failures > 1 { // a new connection loses the sessions of this one
				p.connector.Drop(ctx, conn)
				if failures == 1 {
					continue // at once, with a new connection
				}
			}
			handling.Wait(ctx, ctx, p.runner.Backoff(failures))
		}
	}
}

// wake brings the owner of a session to look for the intent of an operator, if it is this process: the one
// that holds the session, or can lock it. Another process that holds it finds the intent itself.
func (p *SessionProcessor) wake(ctx, working context.Context, holding *sync.WaitGroup, key string) error {
	p.mu.Lock()
	_, held := p.keys[key]
	p.wanted[key] = true
	p.mu.Unlock()
	if held {
		return nil
	}
	conn, err := p.connector.Get(ctx)
	if err != nil {
		return err
	}
	s, err := conn.accept(ctx, p.opts.Prefetch, key)
	if err != nil {
		p.isWanted(key)
		if wire.HasCondition(err, conditionLocked) {
			return nil
		}
		return err
	}
	holding.Go(func() { p.hold(ctx, working, s) })
	return nil
}

// isWanted reports once after wake that key is to be drained.
func (p *SessionProcessor) isWanted(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := p.wanted[key]
	delete(p.wanted, key)
	return wanted
}

// awaitPermit blocks until a permit is free, without holding it. It reports false if ctx has ended.
func (p *SessionProcessor) awaitPermit(ctx context.Context) bool {
	select {
	case p.permits <- struct{}{}:
		<-p.permits
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// acquirePermit blocks until there is a permit. It reports false if one of the contexts ends first.
func (h *heldSession) acquirePermit(ctx, locked context.Context) bool {
	select {
	case h.p.permits <- struct{}{}:
		h.permit = true
	case <-ctx.Done():
	case <-locked.Done():
	}
	return h.permit
}

func (h *heldSession) releasePermit() {
	if h.permit {
		h.permit = false
		<-h.p.permits
	}
}

// acquireKey blocks until the previous owner has released the key. It reports false if one of the contexts
// ends first.
func (p *SessionProcessor) acquireKey(ctx, locked context.Context, key string) bool {
	for {
		p.mu.Lock()
		released, owned := p.keys[key]
		if !owned {
			p.keys[key] = make(chan struct{})
		}
		p.mu.Unlock()
		if !owned {
			return true
		}
		select {
		case <-released:
		case <-ctx.Done():
			return false
		case <-locked.Done():
			return false
		}
	}
}

// releaseKey must be called after a successful acquireKey.
func (p *SessionProcessor) releaseKey(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.keys[key])
	delete(p.keys, key)
}

// addIdle adds a session without messages. If too many sessions are idle, it evicts the one that has been
// idle for longest.
func (p *SessionProcessor) addIdle(h *heldSession) (place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.evicted = make(chan struct{}) // the previous one may be closed, if an event arrived before the eviction
	place = p.idle.PushBack(h)
	if p.idle.Len() > p.opts.Sessions {
		close(p.idle.Remove(p.idle.Front()).(*heldSession).evicted)
	}
	return place
}

// removeIdle must be called after addIdle.
func (p *SessionProcessor) removeIdle(place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle.Remove(place)
}
