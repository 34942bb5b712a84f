package changefeed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// run is the state of one call of Processor.Run. Its goroutines are the cycle (run itself)
// and, for each owned lease, those of a worker. Other goroutines use only workers and
// relist.
type run struct {
	*env
	workers    *workers
	lister     *lister
	splits     *splits
	gaps       *gaps
	membership *membership
	interval   *interval
	presence   *presence
	swept      sweepSchedule
	vacancies  *vacancies
	last       kept // of the last cycle that balanced
	again      bool // it replaces a run whose container was deleted
	// initializes is set once this run has decided the first leases: it creates them.
	initializes bool
	unpaused    bool // no pause of all hosts was listed since the store denied that there is one
}

func newRun(given *env) *run {
	e := *given
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	e.incarnation, e.relist = hex.EncodeToString(b[:]), newSignal()
	e.self = newHostKey(e.opts.Host, e.incarnation)
	r := &run{env: &e, lister: &lister{env: &e}, splits: &splits{&e}, gaps: &gaps{env: &e}, interval: &interval{env: &e}, swept: sweepSchedule{}}
	r.workers = &workers{env: &e, splits: r.splits, byLease: map[string]*worker{}}
	r.membership = &membership{env: &e, etags: &r.lister.etags, workers: r.workers, duplicates: map[hostKey]bool{}}
	r.vacancies = &vacancies{env: &e}
	r.presence = &presence{env: &e, etags: &r.lister.etags, swept: r.swept}
	return r
}

func (r *run) run(ctx context.Context) error {
	retry := backoff{min: r.opts.RetryMin, max: r.opts.Acquire}
	var failing time.Time // the first of the cycles that failed since one did not
	for ctx.Err() == nil {
		began := r.clock.Now()
		pause, err := r.cycle(ctx)
		_, refused := errors.AsType[*RefusedError](err)
		_, recreated := errors.AsType[*recreatedError](err)
		switch {
		case err == nil:
			retry.reset()
			failing = time.Time{}
		case ctx.Err() != nil: // errors during a stop do not matter
		case recreated: // the other hosts notice it, too: there is no one to hand leases to
			r.workers.drain(nil, r.clock.Now().Add(max(0, r.opts.DrainTimeout)))
			r.presence.deleteHeartbeat(ctx)
			return err
		case errors.Is(err, ErrPermanent) && !r.initialized() && !r.again, refused && !r.initialized():
			return fmt.Errorf("changefeed: %w", err)
		default:
			r.reportError("", "cycle", err)
			pause = retry.next(err)
			if failing.IsZero() {
				failing = began
			}
			if r.clock.Now().Sub(failing) >= r.opts.Expiry { // what others are due of it is not known any more
				r.opts.Siblings.note(r.sibling, nil)
			}
		}
		_ = sleep(ctx, r.clock, pause, r.relist) // the loop's condition asks ctx
		// This short pause merges the signals of many leases that move at once into one
		// listing.
		_ = sleep(ctx, r.clock, began.Add(r.opts.AcquireFast/4).Sub(r.clock.Now()), nil)
	}
	r.drain(ctx)
	return nil
}

// initialised reports whether this run has seen the first leases exist.
func (r *run) initialized() bool { return r.last.initialized }

// sweepSchedule holds the records to delete, and the time of the next attempt for each that
// still exists. Attempts are rare, because a remaining record is harmless.
type sweepSchedule map[string]time.Time

// tryNow reports whether a delete is due, and if so schedules the next one.
func (s sweepSchedule) tryNow(id string, now time.Time, again time.Duration) bool {
	if now.Before(s[id]) {
		return false
	}
	s[id] = now.Add(again)
	return true
}
