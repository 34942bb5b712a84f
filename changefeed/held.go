package changefeed

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// heldKey is a key with an item that is not done. Later items with the same key are queued
// in feed order, as far as they fit its share of the memory; all other keys continue. doc.go
// draws it.
type heldKey struct {
	key           string
	hash          uint64     // of key
	items         []heldItem // in feed order
	backoff       backoff
	due           time.Time
	tried         time.Time // the last dead letter that failed
	since         time.Time // when its first item began to wait for no reason other than itself
	attempt       int       // number of attempts
	handledBefore int64     // items this process had handled at the last attempt
	outlasted     bool      // others were handled between two attempts, since it began to wait
	dropped       int64     // LSN of the first item that is not kept in memory, and must be read again; 0: none
}

// heldItem is an item that is not done.
type heldItem struct {
	verdict  // the last one; unanswered for an item after one that is not done
	page     *page
	item     Item // a copy, because the page is released
	id       string
	refusals int  // the only count of them; Lease.Ahead takes it from here
	dead     bool // the poison policy applies: refused too often,
	waited   bool // or waited too long
}

// keyOf returns the ordering key of an item. For a manual handler everything is one key,
// because its checkpoint covers all items before it.
func (f *flow) keyOf(item *Item) []byte {
	if f.manual() {
		return nil
	}
	return item.Key
}

func (h *heldKey) firstDead() int {
	return slices.IndexFunc(h.items, func(it heldItem) bool { return it.dead })
}

// withhold moves the items of held keys from the segment to their key. Called with mu.
func (f *flow) withhold(s segment) segment {
	if len(f.held) == 0 {
		return s
	}
	free := s.items[:0:0]
	for i := range s.items {
		switch h := f.held[string(f.keyOf(&s.items[i]))]; {
		case h == nil:
			free = append(free, s.items[i])
		case f.keeps(h, &s.items[i]):
			f.hold(h, s.page, &s.items[i], verdict{})
		default:
			h.dropped = cmp.Or(h.dropped, s.items[i].LSN)
			f.window.forget(s.page)
		}
	}
	s.items = free
	return s
}

// keeps reports whether a held key keeps its next item in memory. A transaction is kept whole,
// because it is delivered whole. Called with mu.
func (f *flow) keeps(h *heldKey, next *Item) bool {
	if h.dropped != 0 || f.manual() {
		return h.dropped == 0
	}
	bytes := 0
	for i := range h.items {
		bytes += len(h.items[i].item.Raw)
	}
	n := len(h.items)
	return n > 0 && h.items[n-1].item.LSN == next.LSN || f.window.takes(n, bytes)
}

func (f *flow) newBackoff() backoff {
	return backoff{min: f.opts.RetryMin, max: f.opts.RetryMax}
}

// hold adds an item to a held key. It continues where a former session left it: a refusal
// counts in all sessions, and a key waits since the session before. Called with mu.
func (f *flow) hold(h *heldKey, p *page, item *Item, v verdict) {
	it := heldItem{verdict: v, page: p, item: f.window.hold(p, item)}
	it.id = documentID(&it.item) // of the copy, because the page may be released by now
	for _, before := range f.past.Held {
		if before.Key != h.hash || before.LSN != item.LSN || before.ID != it.id {
			continue
		}
		if it.refusals = before.Refusals; len(h.items) > 0 {
			continue
		}
		if h.outlasted = before.Outlasted; !before.since.IsZero() {
			h.since, h.attempt = before.since, before.attempt
		}
	}
	h.items = append(h.items, it)
}

// settle records the outcome of a segment that was delivered for the first time.
func (f *flow) settle(s segment, verdicts []verdict) {
	if verdicts == nil {
		f.handled.Add(int64(len(s.items)))
		f.window.finish(s.page, len(s.items))
		f.mu.Lock()
		f.adjustBudget(len(s.items), nil) // the handler's dependencies work: end the pause
		f.saveAhead(len(s.items))
		f.kick.send()
		f.mu.Unlock()
		f.report(nil)
		return
	}
	f.mu.Lock()
	handled := 0
	fresh := map[string]*heldKey{}
	for i := range s.items {
		if verdicts[i].kind == done {
			handled++
			continue
		}
		key := string(f.keyOf(&s.items[i]))
		h := fresh[key]
		if h == nil {
			h = &heldKey{key: key, hash: hashOf([]byte(key)), backoff: f.newBackoff(), since: f.clock.Now(), handledBefore: f.handled.Load()}
			fresh[key], f.held[key] = h, h
		}
		f.hold(h, s.page, &s.items[i], verdicts[i])
	}
	f.handled.Add(int64(handled))
	f.window.finish(s.page, handled)
	for _, h := range fresh {
		f.postpone(h, len(h.items))
	}
	f.adjustBudget(handled, verdicts)
	f.saveAhead(handled)
	if !f.retrying {
		f.retrying = true
		f.running.Go(f.retry)
	}
	f.kick.send()
	f.mu.Unlock()
	f.report(firstFailure(verdicts))
}

// saveAhead requests a write after items were handled while a key holds the checkpoint.
// Called with mu.
func (f *flow) saveAhead(handled int) {
	if handled > 0 && len(f.held) > 0 {
		f.keeper.change(func(*Lease) urgency { return soon })
	}
}

// report records a failure, if there is one. Then it reports success if no key is held,
// because a retry may have resolved or parked the failed document in the meantime.
func (f *flow) report(failure error) {
	if failure != nil {
		if f.stopping() || errors.Is(failure, errDoubt) {
			return
		}
		f.noteFailure(ofHandler, failure)
	}
	f.mu.Lock()
	over := len(f.held) == 0
	f.mu.Unlock()
	if over {
		f.noteSuccess(ofHandler)
	}
}

// outcome is the result of one call for the items of a key.
type outcome struct {
	err       error // the first answer that is not done, else the call's error
	blamed    int   // its index in the key's items
	refused   bool
	outside   bool // it waits for an event outside itself: see WaitUntil
	notBefore time.Time
}

// outcomeOf returns the outcome of the first n items of a key. A refused item loses an
// attempt. Called with mu.
func (f *flow) outcomeOf(h *heldKey, n int) (o outcome) {
	for i := range h.items[:n] {
		it := &h.items[i]
		answered := it.kind != unanswered && !o.refused
		if o.err == nil || answered && (it.kind == refused || errors.Is(o.err, errUnanswered)) {
			o.err, o.blamed = it.err, i
		}
		if it.kind == refused {
			o.refused = true
			it.refusals++
			it.dead = f.opts.MaxAttempts > 0 && it.refusals >= f.opts.MaxAttempts
			f.keeper.rewrite() // at once, because refusals must survive a crash
		}
		o.outside = o.outside || it.outside
		if it.notBefore.After(o.notBefore) {
			o.notBefore = it.notBefore
		}
	}
	return o
}

// postpone schedules the next attempt of a key whose first n items were tried and are not
// done. Called with mu.
func (f *flow) postpone(h *heldKey, n int) {
	o := f.outcomeOf(h, n)
	now := f.clock.Now()
	h.attempt++
	if errors.Is(o.err, errDoubt) { // no item is at fault, and the key stays due; the lease is renewed first
		return
	}
	if o.outside {
		h.since, h.outlasted = now, false
	}
	h.outlasted = h.outlasted || !o.outside && h.attempt > 1 && f.handled.Load() > h.handledBefore
	if left := o.notBefore.Sub(f.opts.Now()); left > 0 {
		h.due = now.Add(left)
	} else {
		h.due = now.Add(h.backoff.next(o.err))
	}
	if f.waitedTooLong(h, &o, now) {
		h.items[o.blamed].dead, h.items[o.blamed].waited = true, true
	}
	if h.firstDead() >= 0 {
		h.due = now
	}
	h.handledBefore = f.handled.Load()
}

// waitedTooLong reports whether a key must be dead-lettered: it has waited for WaitLimit,
// or held items fill the window. Other documents must have been handled since its last
// attempt, because otherwise an outage would dead-letter every document. Once the window is
// full, none can be, because nothing more is read: then an earlier pair of attempts counts,
// also of the session before. Called with mu.
func (f *flow) waitedTooLong(h *heldKey, o *outcome, now time.Time) bool {
	limit := f.opts.WaitLimit
	return limit > 0 && !o.refused && !o.outside && h.attempt > 1 &&
		(f.handled.Load() > h.handledBefore && now.Sub(h.since) >= limit || h.outlasted && f.window.crowded())
}
