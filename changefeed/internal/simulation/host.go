package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/changefeed"
)

type host struct {
	sim   *sim
	name  string
	clock *hostClock
	skew  atomic.Int64 // of its wall clock, nanoseconds
	end   context.CancelFunc

	mu        sync.Mutex // guards the fields below
	crashed   bool
	frozen    chan struct{} // closed when the host runs again; nil if it runs
	stops     int           // how often it was stopped
	suspended time.Time     // when it was last suspended, clock included
	setBack   time.Time     // when its wall clock was last set back
}

// maxAttempts is the number of refusals before a document is dead-lettered.
const maxAttempts = 3

func (s *sim) join() error {
	s.names++
	h := &host{sim: s, name: fmt.Sprintf("h%d", s.names), clock: newHostClock(1 + (s.rng.Float64()*2-1)*s.config.Drift)}
	h.skew.Store(int64(s.rng.IntN(1200)-600) * int64(time.Second))
	feed, store, err := s.backend.Connect(h.name)
	if err != nil {
		return fmt.Errorf("connect %s: %w", h.name, err)
	}
	o := s.config.Options
	o.Host, o.Clock = h.name, h.clock
	o.Now = func() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) }
	o.MaxAttempts, o.DeadLetter = maxAttempts, h.deadLetter
	p, err := changefeed.New(&hostFeed{Feed: feed, host: h}, h.recorded(&hostStore{LeaseStore: store, host: h, h: s.history}, func() (own, wall time.Time) { return h.clock.Now(), o.Now() }), h, &o)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.name, err)
	}
	ctx, end := context.WithCancel(s.ctx)
	h.end = end
	s.running.Go(func() {
		if err := p.Run(ctx); err != nil {
			s.verifier.fault("host %s: Run: %v", h.name, err)
		}
	})
	s.hosts = append(s.hosts, h)
	return nil
}

// recorded wraps the lease store of the host if its steps are recorded.
func (h *host) recorded(store changefeed.LeaseStore, clock func() (own, wall time.Time)) changefeed.LeaseStore {
	if h.sim.config.Steps == nil {
		return store
	}
	return h.sim.config.Steps.Store(h.name, clock, store)
}

// gate blocks while the host is stopped.
func (h *host) gate() error {
	for {
		h.mu.Lock()
		crashed, frozen := h.crashed, h.frozen
		h.mu.Unlock()
		switch {
		case crashed:
			return errCrashed
		case frozen == nil:
			return nil
		}
		<-frozen
	}
}

// stop freezes the process, and with suspend also its clock.
func (h *host) stop(suspend bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen == nil {
		h.frozen = make(chan struct{})
		h.stops++
	}
	if suspend {
		h.suspended = time.Now()
		h.clock.stop()
	}
	h.sim.verifier.logEvent("%s stops, its clock too: %t", h.name, suspend)
}

func (h *host) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen == nil {
		return
	}
	h.clock.resume()
	h.sim.verifier.logEvent("%s wakes", h.name)
	close(h.frozen)
	h.frozen = nil
}

// crash ends the process at once for all other parts of the simulation.
func (h *host) crash() {
	h.mu.Lock()
	h.crashed = true
	if h.frozen != nil {
		close(h.frozen)
		h.frozen = nil
	}
	h.mu.Unlock()
	h.clock.resume()
	h.sim.verifier.logEvent("%s crashes", h.name)
	h.end()
}

func (h *host) setWall(off time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if off < time.Duration(h.skew.Swap(int64(off))) {
		h.setBack = time.Now()
	}
	h.sim.verifier.logEvent("%s has a wall clock off by %s", h.name, off)
}

// wasStopped returns the number of stops, and reports whether the host cannot detect its
// suspension: it stopped the monotonic clock, and the wall clock was set back at about the
// same time.
func (h *host) wasStopped() (stops int, unknowingly bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	apart := h.setBack.Sub(h.suspended).Abs()
	return h.stops, !h.suspended.IsZero() && !h.setBack.IsZero() && apart < 4*h.sim.config.Options.Expiry
}

// call is one request of the host.
func (h *host) call(ctx context.Context, w *faultSource, do func() error) error {
	if err := h.gate(); err != nil {
		return err
	}
	if err := wait(ctx, w.delay()); err != nil {
		return err
	}
	for _, step := range []func() error{h.gate, w.before, do, h.gate, w.after} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Handle is the host's handler. It sends the documents one after the other, refuses some and
// leaves some waiting, and then fails as the faults have it: with its answers, or as a whole.
func (h *host) Handle(ctx context.Context, b *changefeed.Batch) error {
	failAt := h.sim.handlers.failAt(len(b.Items))
	held := map[string]bool{} // keys with a document that is not done
	answers := map[int]error{}
	for i := range b.Items {
		item := &b.Items[i]
		switch key := string(item.Key); {
		case i == failAt && i%2 == 0:
			return errHandler
		case i == failAt:
			h.answer(b, answers)
			return errHandler
		case held[key]:
		case key == stuckKey && h.sim.stuck.Load():
			answers[i], held[key] = errHandler, true
		default:
			serial, err := serialOf(item.Raw)
			if err != nil {
				return err
			}
			if serial%refusedEvery == 0 {
				answers[i], held[key] = changefeed.Refuse(errHandler), true
				continue
			}
			if err := h.send(ctx, b.LeaseRef, serial); err != nil {
				return err
			}
			answers[i] = nil
		}
	}
	h.answer(b, answers)
	return nil
}

// Every tenth document or so is refused, and dead-lettered in the end. The documents of one
// key wait until the faults end.
const (
	refusedEvery = 11
	stuckKey     = `"key-1"`
)

func (h *host) answer(b *changefeed.Batch, answers map[int]error) {
	for i, err := range answers {
		b.Answer(i, err)
	}
}

// deadLetter is the host's sink. It counts as a delivery.
func (h *host) deadLetter(ctx context.Context, letter changefeed.DeadLetter) error {
	if h.sim.handlers.failAt(1) == 0 {
		return errHandler
	}
	serial, err := serialOf(letter.Raw)
	if err != nil {
		return err
	}
	if letter.Attempts < maxAttempts {
		h.sim.verifier.fault("V6 %s dead-letters serial %d after %d refusals", h.name, serial, letter.Attempts)
	}
	h.sim.letters.Add(1)
	return h.send(ctx, letter.LeaseRef, serial)
}

func serialOf(raw []byte) (int, error) {
	var doc struct {
		Serial int `json:"serial"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return 0, fmt.Errorf("decode %s: %w", raw, err)
	}
	return doc.Serial, nil
}

// send sends one document. It checks its context before, as a handler must.
func (h *host) send(ctx context.Context, lease changefeed.LeaseRef, serial int) error {
	handlers := &h.sim.handlers
	if err := h.gate(); err != nil {
		return err
	}
	stops, _ := h.wasStopped()
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.sim.config.Steps != nil {
		h.sim.config.Steps.Check(h.name, lease.Range)
	}
	// After the check the document is sent even if ctx ends. A stop in between makes
	// the host a zombie.
	if err := wait(context.WithoutCancel(ctx), handlers.delay()/2); err != nil {
		return err
	}
	if err := h.gate(); err != nil {
		return err
	}
	now, unknowingly := h.wasStopped()
	h.sim.verifier.delivered(delivery{
		host: h.name, epoch: lease.Epoch, lease: lease.Range.String(), serial: serial, excused: now != stops || unknowingly,
		beside: h.sim.config.Foreign,
	})
	return wait(ctx, handlers.delay()/2)
}
