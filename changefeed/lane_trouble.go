package changefeed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"feedbox/changefeed/internal/jsonscan"
)

// This file is what a lane does when a handler fails.

// outageProbe is how many documents may fail, none having been handled, before a
// failing batch is taken for an outage rather than for bad documents.
const outageProbe = 8

// narrow takes a failing segment apart: what can be handled is finished, keys
// whose document fails are held. It returns the items to deliver again as a
// whole: all that is left if nothing could be handled, which is an outage.
func (l *lane) narrow(s segment) []Item {
	began := l.f.w.r.moment()
	groups, keys := groupByKey(s.items)
	n := narrowing{
		groups: groups,
		try: func(items []int) error {
			part := make([]Item, len(items))
			for i, at := range items {
				part[i] = s.items[at]
			}
			return l.f.w.deliver(segment{page: s.page, items: part}, 1)
		},
		stop: func(failed, handled int) bool {
			return l.stopping() || (handled == 0 && failed >= outageProbe && !l.f.w.r.succeededSince(began))
		},
	}
	n.run()
	l.f.finish(s.page, len(n.handled))
	// What others handled between two attempts vouches as well as what they handled
	// during one: a batch that was left by an outage may be the last that fails.
	blamed := len(n.handled) > 0 || l.f.w.r.succeededSince(began) ||
		l.outage && !n.end && l.f.w.r.succeededSince(l.doubt)
	l.outage, l.doubt = !blamed, began
	// The only document that fails, after others were handled: it waits as a held key
	// does, and is tried alone (heldKey.blames).
	lone := !blamed && !n.end && len(n.failed) == 1 && l.f.w.r.suspects.Load() == 1 && l.f.w.r.succeededSince(l.first)
	rest := map[int]bool{}
	for i := range s.items {
		rest[i] = true
	}
	for _, i := range n.handled {
		delete(rest, i)
	}
	for _, failed := range n.failed {
		if !blamed && !lone && !failed.named {
			continue
		}
		group := groups[failed.group]
		h := l.hold(keys[failed.group])
		h.since = began
		if lone {
			h.since = l.first
		}
		h.fail(l, &s.items[group[failed.at]], failed.err, blamed || failed.named)
		for _, i := range group[failed.at:] {
			h.add(s.page, s.items[i])
			delete(rest, i)
		}
	}
	left := make([]Item, 0, len(rest))
	for i := range s.items {
		if rest[i] {
			left = append(left, s.items[i])
		}
	}
	return left
}

// groupByKey returns the indices of each key's items, keys in feed order.
func groupByKey(items []Item) (groups [][]int, keys []string) {
	at := map[string]int{}
	for i := range items {
		key := string(items[i].Key)
		g, known := at[key]
		if !known {
			g = len(groups)
			at[key] = g
			groups, keys = append(groups, nil), append(keys, key)
		}
		groups[g] = append(groups[g], i)
	}
	return groups, keys
}

// fail notes that the key's first document failed; counted says that it is to
// blame.
func (h *heldKey) fail(l *lane, head *Item, err error, counted bool) {
	now := l.f.w.r.clock.Now()
	h.err, h.tried, h.triedAt = err, l.f.w.r.moment(), now
	h.attempt++
	if counted && l.f.w.countAttempt(head) {
		h.dead = true
	}
	pause := h.backoff.next(err)
	if !counted {
		pause = max(pause, l.f.w.r.lonePause())
	}
	h.due = now.Add(pause)
	if h.dead {
		h.due = now
	}
	l.f.w.failing(l, err)
}

// blames decides whether an unnamed failure of the key's first document, tried
// alone, is the document's own: something else was handled since it was last
// tried. If nothing else is there to be handled, it is enough that it is the only
// one that fails and that others of its batch were handled after it first failed;
// then its attempts are spread over Options.StuckAfter.
func (h *heldKey) blames(l *lane, tried moment) bool {
	r := l.f.w.r
	if r.succeededSince(tried) {
		return true
	}
	return r.suspects.Load() == 1 && r.succeededSince(h.since) && r.clock.Now().Sub(h.triedAt) >= r.lonePause()
}

// lonePause is the time between attempts that nothing else vouches for.
func (r *run) lonePause() time.Duration {
	return max(r.opts.RetryMin, r.opts.StuckAfter/time.Duration(max(1, r.opts.MaxAttempts)))
}

// retry tries a held key again, from its first document on, and up to one whose
// attempts are used up.
func (l *lane) retry(h *heldKey) {
	w := l.f.w
	s := h.segments[0]
	if cut := w.firstCondemned(s.items); cut == 0 || h.dead {
		l.resolve(h)
		return
	} else if cut > 0 {
		s.items = s.items[:cut]
	}
	tried := h.tried
	err := w.deliver(s, h.attempt+1)
	if err == nil {
		l.advance(h, len(s.items))
		return
	}
	if l.stopping() {
		h.due = w.r.clock.Now()
		return
	}
	if poison, ok := asPoison(err); ok {
		at, cause := len(s.items), err
		for _, d := range poison.Documents {
			if d.Index >= 0 && d.Index < at {
				at, cause = d.Index, d.Err
			}
		}
		if at < len(s.items) {
			l.advanceTo(h, at, cause, true)
			return
		}
	}
	if w.r.isOutage(err) || len(s.items) == 1 {
		h.fail(l, &s.items[0], err, !w.r.isOutage(err) && h.blames(l, tried))
		return
	}
	l.narrowKey(h, s, err)
}

// narrowKey finds the failing document of a held key's first segment.
func (l *lane) narrowKey(h *heldKey, s segment, err error) {
	tried := h.tried
	all := make([]int, len(s.items))
	for i := range all {
		all[i] = i
	}
	n := narrowing{
		groups: [][]int{all},
		try: func(items []int) error {
			return l.f.w.deliver(segment{page: s.page, items: s.items[items[0] : items[len(items)-1]+1]}, h.attempt+1)
		},
		stop: func(int, int) bool { return l.stopping() },
	}
	n.run()
	switch {
	case len(n.failed) > 0:
		failed := n.failed[0]
		blamed := failed.named || len(n.handled) > 0 || h.blames(l, tried)
		l.advanceTo(h, failed.at, failed.err, blamed)
	case len(n.handled) == len(all):
		l.advance(h, len(all))
	default:
		l.advanceTo(h, len(n.handled), err, false)
	}
}

// advanceTo finishes the items ahead of a failing one and notes its failure.
func (l *lane) advanceTo(h *heldKey, at int, err error, counted bool) {
	s := &h.segments[0]
	if at > 0 {
		l.f.finish(s.page, at)
		s.items = s.items[at:]
	}
	h.fail(l, &s.items[0], err, counted)
}

// advance finishes the first n items of a held key, and lets the key go if
// nothing of it waits any more.
func (l *lane) advance(h *heldKey, n int) {
	s := h.segments[0]
	if n < len(s.items) {
		h.segments[0].items = s.items[n:]
	} else {
		h.segments = h.segments[1:]
	}
	h.dead, h.attempt = false, 0
	h.tried, h.triedAt = l.f.w.r.moment(), l.f.w.r.clock.Now()
	h.backoff.reset()
	h.due, h.since = h.triedAt, h.tried
	if len(h.segments) == 0 {
		delete(l.held, h.key)
		l.f.w.r.suspects.Add(-1)
	}
	l.f.finish(s.page, n)
	if len(l.held) == 0 {
		l.f.w.recovered(l)
	}
}

// resolve applies the poison policy to a held key's first document.
func (l *lane) resolve(h *heldKey) {
	s := h.segments[0]
	item := &s.items[0]
	w := l.f.w
	attempts := countOf(w.attempts(), documentName(item))
	event := DocumentPoisoned{
		Lease: w.id, Range: w.rng, ID: documentID(item), LSN: item.LSN,
		Attempts: attempts, Policy: w.r.opts.Poison, Err: h.err,
	}
	switch w.r.opts.Poison {
	case PoisonStop:
		w.stopRange(h.err)
		w.r.obs.documentPoisoned(event)
		return
	case PoisonDeadLetter:
		letter := DeadLetter{
			Lease: w.id, Range: w.rng, Epoch: w.epoch, ID: documentID(item), Key: bytes.Clone(item.Key),
			LSN: item.LSN, Changed: item.Time(), Attempts: attempts, Err: h.err, Raw: bytes.Clone(item.Raw),
		}
		if err := w.bury(letter); err != nil {
			if !l.stopping() {
				h.due = w.r.clock.Now().Add(h.backoff.next(err))
				w.failing(l, fmt.Errorf("dead letter: %w", err))
			}
			return
		}
	case PoisonSkip:
	}
	w.r.obs.documentPoisoned(event)
	l.advance(h, 1)
}

// asPoison is the PoisonError in err that names at least one document.
func asPoison(err error) (*PoisonError, bool) {
	var poison *PoisonError
	if errors.As(err, &poison) && len(poison.Documents) > 0 {
		return poison, true
	}
	return nil, false
}

// isNetworkError is the default of Options.IsOutage.
func isNetworkError(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// documentID is the document's "id", or "".
func documentID(item *Item) string {
	id, ok := jsonscan.Unquote(jsonscan.Member(item.Raw, "id"))
	if !ok {
		return string(jsonscan.Member(item.Raw, "id"))
	}
	return string(id)
}
