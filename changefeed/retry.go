package changefeed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxRetry returns the largest number of items of one retry.
func (f *flow) maxRetry() int {
	if f.opts.MaxItems > 0 {
		return f.opts.MaxItems
	}
	return 100
}

// adjustBudget sets the number of items of the next retry, and its earliest time: see
// doc.go. Called with mu.
func (f *flow) adjustBudget(handled int, verdicts []verdict) {
	if handled > 0 {
		f.budget = min(2*f.budget, f.maxRetry())
		f.pause.reset()
		f.resting = time.Time{}
		return
	}
	if !slices.ContainsFunc(verdicts, func(v verdict) bool { return v.kind != unanswered || errors.Is(v.err, errDoubt) }) {
		f.budget = 1
		f.resting = f.clock.Now().Add(f.pause.next(verdicts[0].err))
	}
}

// retry retries held keys when they are due, one handler call at a time, until none is
// left.
func (f *flow) retry() {
	for {
		switch keys, pause, ok := f.nextDue(); {
		case !ok:
			return
		case len(keys) > 0:
			for began := f.clock.Now(); len(keys) > 0 && f.retryKeys(keys); keys = keys[1:] {
				if f.takesTurns(began) {
					break
				}
			}
		default:
			_ = sleep(f.ctx, f.clock, pause, f.kick) // nextDue checks ctx
		}
	}
}

// nextDue returns the held keys that are due, the earliest first, or the time until one is
// due. ok is false if nothing is left to retry; the goroutine then ends.
func (f *flow) nextDue() (keys []*heldKey, pause time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.held) == 0 || f.closing || f.halted || f.ctx.Err() != nil {
		f.retrying = false
		return nil, 0, false
	}
	now := f.clock.Now()
	if now.Before(f.resting) {
		return nil, f.resting.Sub(now), true
	}
	next := now.Add(time.Hour)
	waits := false
	for _, h := range f.held {
		switch {
		case len(h.items) == 0: // it is read again
		case h.due.After(now):
			waits = true
			if h.due.Before(next) {
				next = h.due
			}
		default:
			keys = append(keys, h)
		}
	}
	f.retrying = waits || len(keys) > 0
	slices.SortFunc(keys, func(a, b *heldKey) int {
		return cmp.Or(a.due.Compare(b.due), a.tried.Compare(b.tried), cmp.Compare(a.key, b.key))
	})
	// With thousands of keys the pause is longer, because each scan looks at all of them.
	return keys, max(next.Sub(now), time.Duration(len(f.held))*10*time.Microsecond), f.retrying
}

// retryKeys applies the poison policy to a dead item of the first key, or passes some items
// of the first keys to the handler again. It returns true after the former: thousands of keys may be dead at once, and
// nothing else has changed.
func (f *flow) retryKeys(keys []*heldKey) bool {
	var batch []Item
	var taken []int // items of each key
	var last *page
	attempt, resumed := 0, true
	f.mu.Lock()
	if f.closing || f.halted || f.ctx.Err() != nil || f.clock.Now().Before(f.resting) {
		f.mu.Unlock()
		return false
	}
	if i := keys[0].firstDead(); i >= 0 {
		it := keys[0].items[i]
		f.mu.Unlock()
		f.applyPolicy(keys[0], i, it)
		return true
	}
	for _, h := range keys {
		n := f.retryCount(h, f.budget-len(batch))
		if n <= 0 || h.firstDead() >= 0 {
			break
		}
		for i := range h.items[:n] {
			batch = append(batch, h.items[i].item)
			resumed = resumed && h.items[i].page.resumed
		}
		taken, attempt, last = append(taken, n), max(attempt, h.attempt), h.items[n-1].page
	}
	f.mu.Unlock()
	verdicts := f.call(last, batch, attempt+1, resumed)
	f.mu.Lock()
	at, handled := 0, 0
	for k, n := range taken {
		var part []verdict
		if verdicts != nil {
			part = verdicts[at : at+n]
		}
		handled += f.settleKey(keys[k], n, part)
		at += n
	}
	f.handled.Add(int64(handled))
	f.adjustBudget(handled, verdicts)
	f.mu.Unlock()
	f.report(firstFailure(verdicts))
	return false
}

// retryCount returns the number of items of a key in the next retry, given room for that
// many. It never divides a transaction. Called with mu.
func (f *flow) retryCount(h *heldKey, room int) int {
	n := len(h.items)
	if f.manual() { // a page's checkpoint covers the whole page
		if next := slices.IndexFunc(h.items[:n], func(it heldItem) bool { return it.page != h.items[0].page }); next > 0 {
			return next
		}
		return n
	}
	if room >= n || room <= 0 {
		return min(n, max(0, room))
	}
	for room < n && h.items[room].item.LSN == h.items[room-1].item.LSN {
		room++
	}
	return room
}

// progressed records that an item of the key is done or was removed. The remaining items
// begin to wait now. Called with mu.
func (f *flow) progressed(h *heldKey) {
	now := f.clock.Now()
	h.since, h.due, h.attempt, h.outlasted = now, now, 0, false
	h.backoff.reset()
	switch {
	case len(h.items) > 0:
	case h.dropped != 0: // its next item is in no page: it stays held until the next session
		f.reread.send()
	default:
		delete(f.held, h.key)
	}
	f.keeper.change(func(*Lease) urgency { return soon })
}

// settleKey records the outcome of the first n items of a key and returns how many are
// done. nil verdicts mean that all are. Called with mu.
func (f *flow) settleKey(h *heldKey, n int, verdicts []verdict) (handled int) {
	var left []heldItem
	for i, it := range h.items[:n] {
		if verdicts == nil || verdicts[i].kind == done {
			f.window.finishHeld(it.page, &it.item)
			handled++
			continue
		}
		it.verdict = verdicts[i]
		left = append(left, it)
	}
	h.items = slices.Concat(left, h.items[n:])
	if handled > 0 {
		f.progressed(h)
	}
	if len(left) > 0 {
		f.postpone(h, len(left))
	}
	return handled
}

// applyPolicy applies the poison policy to item i of a key. Only the goroutine of retry removes items of a key.
func (f *flow) applyPolicy(h *heldKey, i int, it heldItem) {
	o := &f.opts
	letter := DeadLetter{
		LeaseRef: f.LeaseRef, ID: it.id, Key: it.item.Key, LSN: it.item.LSN,
		Changed: it.item.Time(), Waiting: it.waited, Err: it.err, Raw: it.item.Raw,
		Attempts: it.refusals,
	}
	if it.waited {
		letter.Attempts = h.attempt
	}
	switch o.Poison {
	case PoisonStop:
		f.halt()
		f.markStopped(letter.Err)
	case PoisonDeadLetter:
		began := f.clock.Now()
		if err := f.deadLetter(letter); err != nil {
			f.mu.Lock()
			now := f.clock.Now()
			h.due, h.tried = now.Add(h.backoff.next(err)), now
			if it.waited { // retry it: the handler may succeed by now
				h.items[i].dead, h.items[i].waited = false, false
			}
			if took := now.Sub(began); took >= slowLetter {
				f.restDead(now.Add(took))
			}
			f.mu.Unlock()
			f.report(fmt.Errorf("dead letter: %w", err))
			return
		}
	case PoisonSkip:
	}
	notify(f.obs.DocumentPoisoned, DocumentPoisoned{letter, o.Poison})
	if o.Poison == PoisonStop {
		return
	}
	f.mu.Lock()
	f.window.finishHeld(it.page, &it.item)
	h.items = slices.Delete(slices.Clone(h.items), i, i+1)
	f.progressed(h)
	f.mu.Unlock()
	f.report(nil)
}

// slowLetter is the time after which dead letters delay other keys. A scan after each one would look at thousands of
// dead keys each time.
const slowLetter = time.Second

// takesTurns reports whether the dead letters since a time have taken so long that the other keys that are due come
// first now.
func (f *flow) takesTurns(began time.Time) bool {
	now := f.clock.Now()
	if now.Sub(began) < slowLetter {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restDead(now)
	return true
}

// restDead makes no key with a dead item due before until. So dead letters that take long and fail, however
// many, leave half of the time to other keys. Then those that were not tried for longest come first, because
// the dead letters of one key alone may fail. Called with mu.
func (f *flow) restDead(until time.Time) {
	for _, h := range f.held {
		if h.firstDead() >= 0 && h.due.Before(until) {
			h.due = until
		}
	}
}
