package handling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
)

// Parking keeps the order of a key after one of its events was refused: it parks the event and the
// later ones of the key, and passes them to the handler once an operator wants that. Gates, parked
// events and their draining are those of package relay. To the Drainer the handler is a Publisher.
// Only the owner of a key uses Park and Drain; see the package comment.
type Parking struct {
	store  consumer.ParkedStore
	poll   time.Duration
	inbox  consumer.Inbox
	runner *Runner
	relay  *relay.Relay
	owned  *relay.Drainer
	wake   func(ctx context.Context, key string) error

	mu      sync.Mutex // guards the fields below
	woken   map[string]time.Time
	refused map[string]refusal // by key, of events that are being parked
}

// refusal says why this process parks an event.
type refusal struct {
	event    string
	reason   *consumer.DeadLetterError
	attempts int
}

const (
	parkTimeout = 15 * time.Second // of a request to the store of parked events
	// drainTries is the number of attempts for one retry of an operator. It is low, because later events
	// of the key stay at the broker meanwhile, and some block those of other keys there.
	drainTries = 3
	maxWoken   = 10_000
)

// NewParking returns nil without a store. poll is consumer.Options.ParkedPoll. r must be initialized.
func NewParking(store consumer.ParkedStore, poll time.Duration, inbox consumer.Inbox, r *Runner) (*Parking, error) {
	if store == nil {
		return nil, nil //nolint:nilnil // parking is off
	}
	p := &Parking{store: store, poll: cmp.Or(poll, 5*time.Second), inbox: inbox, runner: r, woken: make(map[string]time.Time), refused: make(map[string]refusal)}
	var err error
	if p.relay, err = relay.New(Decoder{}, p, &relay.Options{Parked: store}); err == nil {
		p.owned, err = relay.NewDrainer(skipRecorder{store, inbox}, ranges(func(ctx context.Context, _ string, do func(context.Context) error) error {
			return do(ctx)
		}), p.relay, relay.DrainOptions{Poll: p.poll, Drained: p.drained})
	}
	return p, err
}

// ranges is a relay.Ranges.
type ranges func(ctx context.Context, key string, do func(context.Context) error) error

func (r ranges) Own(ctx context.Context, key string, do func(context.Context) error) error {
	return r(ctx, key, do)
}

// Poll looks for the intents of operators until ctx ends. It passes each key to wake, which brings the
// owner of the key, in any process, to call Drain. wake need not succeed: the next poll repeats it.
func (p *Parking) Poll(ctx context.Context, wake func(ctx context.Context, key string) error) {
	poller, err := relay.NewDrainer(p.store, ranges(func(ctx context.Context, key string, _ func(context.Context) error) error {
		if err := wake(ctx, key); err != nil {
			p.runner.Log.WarnContext(ctx, "owner of a parked key not notified", "key", key, "error", err)
		}
		return relay.ErrNotOwned
	}), p.relay, relay.DrainOptions{Poll: p.poll, PollFailed: func(ctx context.Context, err error) {
		p.runner.Log.WarnContext(ctx, "parked events unavailable", "error", err)
	}})
	if err == nil {
		err = poller.Run(ctx)
	}
	if err != nil {
		p.runner.Log.ErrorContext(ctx, "parked events are not retried", "error", err)
	}
}

// send sends a message to wake the owner of key, unless the poll before sent one: it may still be on its way.
func (p *Parking) send(ctx context.Context, key string) error {
	p.mu.Lock()
	early := time.Since(p.woken[key]) < 2*p.poll
	if len(p.woken) >= maxWoken {
		clear(p.woken)
	}
	if !early {
		p.woken[key] = time.Now()
	}
	p.mu.Unlock()
	if early {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	return p.wake(ctx, key)
}

// Drain carries out the intent of an operator, if the key has one. The caller owns the key, and must
// load its KeyProcessor again.
func (p *Parking) Drain(ctx context.Context, key string) {
	p.mu.Lock()
	delete(p.woken, key)
	p.mu.Unlock()
	_ = p.owned.Drain(ctx, key) // reported by drained
}

func (p *Parking) drained(ctx context.Context, d relay.DrainReport) {
	if d.Missing > 0 {
		p.runner.Log.ErrorContext(ctx, "parked events are missing from the store and were not handled", "key", d.Key, "missing", d.Missing)
	}
	switch {
	case d.Err != nil && ctx.Err() == nil:
		p.runner.Log.WarnContext(ctx, "key stays parked", "key", d.Key, "handled", d.Sent, "reason", relay.ReasonOf(d.Err), "error", d.Err)
	case d.Opened:
		p.runner.Log.InfoContext(ctx, "key no longer parked", "key", d.Key, "handled", d.Sent)
	}
}

// remember keeps the reason of an event until it is parked, which may need several attempts.
func (p *Parking) remember(e *consumer.Event, reason *consumer.DeadLetterError, attempts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) >= maxWoken {
		clear(p.refused)
	}
	p.refused[e.Key] = refusal{idOf(e), reason, attempts}
}

func (p *Parking) forget(e *consumer.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, e.Key)
}

// reasonOf returns why an event is being parked.
func (p *Parking) reasonOf(e *consumer.Event) (*consumer.DeadLetterError, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.refused[e.Key]; r.event == idOf(e) {
		return r.reason, r.attempts
	}
	return &consumer.DeadLetterError{Reason: consumer.ReasonUnknown, Err: errors.New("the process that refused the event ended before it had stored why")}, 0
}

// closed returns what closed the gate of key, or nil if it is open.
func (p *Parking) closed(ctx context.Context, key string) (*relay.Closing, error) {
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	return p.owned.Closed(ctx, key)
}

// park parks an event behind the gate that held closed, or closes the gate for a reason unless it is closed.
// It returns relay.ErrGateOpen if that gate was opened, also if another event has closed it again.
func (p *Parking) park(ctx context.Context, e *consumer.Event, held *relay.Closing, reason *consumer.DeadLetterError, attempts int) (*relay.Closing, error) {
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	document, err := EncodeEvent(e)
	if err != nil {
		return held, err
	}
	parked := relay.ParkedEvent{
		ID: idOf(e), Key: e.Key, Action: e.Action, Document: document, Sequence: e.Sequence, InOrder: true,
		Reason: "held", ParkedAt: time.Now().UTC().Round(time.Millisecond), Attempts: attempts,
	}
	var closing *relay.Closing
	if reason != nil {
		parked.Reason, parked.Error = reason.Code(), reason.Description()
		closing = &relay.Closing{Event: parked.ID, Reason: parked.Reason, Error: parked.Error, At: parked.ParkedAt}
	} else {
		parked.Closing = held
	}
	done, err := p.store.Park(ctx, e.Key, []relay.ParkedEvent{parked}, closing)
	if err == nil && len(done.Parked)+len(done.Existing) == 0 {
		err = relay.ErrGateOpen
	}
	if err != nil {
		return held, fmt.Errorf("park event %s of key %s: %w", e.ID, e.Key, err)
	}
	return cmp.Or(held, closing), nil
}

// Publish implements relay.Publisher: it passes parked events to the handler. Only Drain calls it.
func (p *Parking) Publish(ctx context.Context, groups []relay.Group) error {
	var failed relay.PublishError
	for i := range groups {
		if sent, err := p.handleKey(ctx, &groups[i]); err != nil {
			failed.Keys = append(failed.Keys, relay.KeyError{Group: i, Sent: sent, Err: err})
		}
	}
	if failed.Keys == nil {
		return nil
	}
	return &failed
}

func (p *Parking) handleKey(ctx context.Context, g *relay.Group) (handled int, err error) {
	k := &KeyProcessor{Runner: p.runner, Inbox: p.inbox}
	if err := k.Load(ctx, g.Key); err != nil {
		return 0, inboxFailed(err)
	}
	for i := range g.Messages {
		e, err := DecodeEvent(g.Messages[i].Body)
		if err == nil {
			err = p.handle(ctx, k, e)
		}
		if err != nil {
			return i, err
		}
	}
	return len(g.Messages), nil
}

// handle calls the handler up to drainTries times. The mark of the key is that of the last parked event,
// so a mark of its own shows whether a parked event was handled.
func (p *Parking) handle(ctx context.Context, k *KeyProcessor, e *consumer.Event) error {
	e.Park(markOf(e))
	for e.DeliveryCount = 1; ; e.DeliveryCount++ {
		if err := relay.Ended(ctx); err != nil {
			return err
		}
		out := consumer.Outcome{Event: e}
		handlerFailed := k.Process(ctx, &out, &Progress{})
		if out.Err != nil {
			out.Action = consumer.Abandoned
		}
		if !IsUntried(out.Err) {
			p.runner.Observe(ctx, out)
		}
		switch final, _ := errors.AsType[*consumer.DeadLetterError](out.Err); {
		case out.Err == nil:
			return nil
		case ctx.Err() != nil:
			return &relay.Error{Class: relay.Outage, Reason: "interrupted", Err: out.Err}
		case !handlerFailed:
			return inboxFailed(out.Err)
		case IsUnavailable(out.Err):
			return &relay.Error{Class: relay.Outage, Reason: "handler_unavailable", Err: out.Err}
		case final != nil && p.runner.Drops(e):
			if k.Drop(ctx, &out, final) {
				return nil
			}
			return inboxFailed(out.Err)
		case final != nil:
			return &relay.Error{Class: relay.Refused, Reason: final.Reason, Err: final}
		case errors.Is(out.Err, consumer.Defer()):
			return relay.Refuse(consumer.ReasonCannotDefer, "a parked event is no longer at the broker, which therefore cannot defer it")
		case e.DeliveryCount >= drainTries:
			return &relay.Error{Class: relay.Refused, Reason: consumer.ReasonAttempts, Err: out.Err}
		}
		Wait(ctx, ctx, p.runner.BackoffOf(e, e.DeliveryCount))
	}
}

func inboxFailed(err error) error {
	return &relay.Error{Class: relay.Outage, Reason: "inbox_unavailable", Err: err}
}

// skipRecorder records a skipped event in the inbox before it is removed. It may not be recorded yet, if
// a process stopped after it had parked the event. The broker then delivers it again, maybe after the
// gate was opened.
type skipRecorder struct {
	relay.DrainStore
	inbox consumer.Inbox
}

// Remove implements relay.DrainStore.
func (s skipRecorder) Remove(ctx context.Context, g relay.Gate, events []relay.ParkedEvent, skipped *relay.Skipped) (relay.Gate, error) {
	if skipped != nil {
		if err := s.record(ctx, skipped); err != nil {
			return g, err
		}
	}
	g, err := s.DrainStore.Remove(ctx, g, events, skipped)
	if err == nil && skipped != nil {
		err = s.close(ctx, skipped)
	}
	return g, err
}

func (s skipRecorder) record(ctx context.Context, skipped *relay.Skipped) error {
	e, err := DecodeEvent(skipped.Event.Document)
	if err != nil {
		return nil //nolint:nilerr // not written by this package; an operator must be able to skip it
	}
	last, err := s.inbox.Last(ctx, e.Key)
	if v := consumer.Judge(last, e); err == nil && v != consumer.Duplicate && v != consumer.Stale {
		err = s.inbox.Record(ctx, e.Key, last.Next(e))
	}
	return err
}

// close gives a skipped event a mark of its own, because a late request may park it again. It does so after the
// removal: if the operator replaces the skip by a retry before it, the event must be handled.
func (s skipRecorder) close(ctx context.Context, skipped *relay.Skipped) error {
	e, err := DecodeEvent(skipped.Event.Document)
	if err != nil {
		return nil //nolint:nilerr // as in record
	}
	e.Park(markOf(e))
	return s.inbox.Record(ctx, e.InboxKey(), e.Mark())
}
