package changefeed

import (
	"errors"
	"slices"
	"time"
)

// lane delivers its items one batch at a time. Keys are spread over lanes by
// hash, so items with one key meet no other lane.
//
// A key whose document cannot be handled is held: its items wait, in order,
// while the lane goes on with other keys; each held key is tried again on its
// own timer. The goroutine of a lane exists only while there is work.
type lane struct {
	f     *flow
	kick  chan struct{} // capacity 1: more work, or the flow is closing
	queue []segment     // guarded by flow.mu
	alive bool          // guarded by flow.mu; the goroutine runs
	works bool          // guarded by flow.mu; it delivers a segment

	// The goroutine's own:
	held   map[string]*heldKey
	outage bool   // the last narrowing found nothing that can be handled
	doubt  moment // when that narrowing began
	first  moment // when the segment that is being delivered first failed
}

// segment is a run of items of one page.
type segment struct {
	page  *page
	items []Item
}

// heldKey is a key that waits for its first document to be handled.
type heldKey struct {
	key      string
	segments []segment // in feed order; the first item of the first failed
	backoff  backoff
	due      time.Time
	since    moment    // when the head first failed
	tried    moment    // when it was last tried
	triedAt  time.Time // the same
	attempt  int
	dead     bool // attempts are used up: apply the policy instead of trying
	err      error
}

func newLane(f *flow) *lane { return &lane{f: f, kick: make(chan struct{}, 1)} }

// push queues work and starts the goroutine if there is none. Called with
// flow.mu.
func (l *lane) push(s segment) {
	l.queue = append(l.queue, s)
	if l.alive {
		l.nudge()
		return
	}
	l.alive = true
	l.f.running.Go(l.run)
}

func (l *lane) nudge() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// next takes the next segment to begin. Called by the goroutine; it ends when
// more is false.
func (l *lane) next() (s segment, ok, more bool) {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	l.works = false
	if len(l.queue) == 0 {
		f.laneFree()
	}
	switch {
	case f.closing && (len(l.queue) == 0 || l.queue[0].page.seq > f.started || f.halted):
		l.leave()
		return segment{}, false, false
	case len(l.queue) == 0 && len(l.held) == 0:
		l.leave()
		return segment{}, false, false
	case len(l.queue) == 0 || f.halted:
		return segment{}, false, true
	}
	s = l.queue[0]
	l.queue[0] = segment{}
	l.queue = l.queue[1:]
	f.started = max(f.started, s.page.seq)
	l.works = true
	return s, true, true
}

func (l *lane) run() {
	ring := newAlarm(l.f.w.r.clock)
	defer ring.off()
	for {
		if h := l.due(); h != nil && !l.stopping() {
			l.retry(h)
			continue
		}
		s, ok, more := l.next()
		switch {
		case !more:
			return
		case ok:
			if !l.take(s) {
				l.abandon()
				return
			}
			continue
		}
		if wait, some := l.soonest(); some && !l.stopping() {
			ring.set(wait)
		}
		select {
		case <-ring.ring:
		case <-l.kick:
		case <-l.f.w.ctx.Done():
			l.abandon()
			return
		}
		ring.off()
	}
}

// abandon leaves what is left undone.
func (l *lane) abandon() {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.leave()
}

// leave is the last thing the goroutine does with the lane: the next one may
// begin at once. Called with flow.mu.
func (l *lane) leave() {
	l.f.w.r.suspects.Add(-int64(len(l.held)))
	l.held, l.queue, l.alive, l.works = nil, nil, false, false
}

// stopping reports whether nothing may be tried again.
func (l *lane) stopping() bool {
	if l.f.w.ctx.Err() != nil {
		return true
	}
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	return l.f.closing || l.f.halted
}

// due is a held key whose time has come, or nil.
func (l *lane) due() *heldKey {
	now := l.f.w.r.clock.Now()
	var first *heldKey
	for _, h := range l.held {
		if !h.due.After(now) && (first == nil || h.due.Before(first.due)) {
			first = h
		}
	}
	return first
}

func (l *lane) soonest() (wait time.Duration, ok bool) {
	now := l.f.w.r.clock.Now()
	for _, h := range l.held {
		if d := h.due.Sub(now); !ok || d < wait {
			wait, ok = d, true
		}
	}
	return wait, ok
}

// take delivers a segment; items of held keys join their key instead. It
// reports false if items are left that nobody will deliver: the flow is closing
// or the lease is gone. Later items must not overtake them.
func (l *lane) take(s segment) bool {
	s = l.withhold(s)
	if len(s.items) == 0 {
		return true
	}
	retry := l.f.w.retryBackoff()
	narrowed := moment(-1)
	for attempt := 1; ; attempt++ {
		err := l.f.w.deliver(s, attempt)
		if err == nil {
			l.f.finish(s.page, len(s.items))
			l.f.w.recovered(l)
			return true
		}
		if l.stopping() {
			return false
		}
		l.f.w.failing(l, err)
		if attempt == 1 {
			l.first = l.f.w.r.moment()
			l.f.w.r.suspects.Add(1)
			defer l.f.w.r.suspects.Add(-1)
		}
		if poison, ok := asPoison(err); ok {
			s.items = l.isolate(s, poison)
		} else if attempt >= narrowAfter && !l.f.w.r.isOutage(err) && l.worthNarrowing(attempt, narrowed) {
			narrowed = l.f.w.r.moment()
			s.items = l.narrow(s)
		}
		if len(s.items) == 0 {
			return true
		}
		if sleep(l.f.w.ctx, l.f.w.r.clock, retry.next(err), l.f.closed) != nil || l.stopping() {
			return false
		}
	}
}

// worthNarrowing reports whether to take a failing batch apart: the first time,
// and in what looked like an outage when something was handled since, or now and
// then.
func (l *lane) worthNarrowing(attempt int, narrowed moment) bool {
	return narrowed < 0 || !l.outage || l.f.w.r.succeededSince(narrowed) || attempt%10 == 0
}

// narrowAfter is how often a batch that fails without naming a document is
// tried as a whole before it is taken apart.
const narrowAfter = 2

// withhold moves the items of held keys, and of documents that used up their
// attempts before this host had the lease, to their keys.
func (l *lane) withhold(s segment) segment {
	l.condemn(s)
	if len(l.held) == 0 {
		return s
	}
	free := s.items[:0:0]
	for i := range s.items {
		if h := l.held[string(s.items[i].Key)]; h != nil {
			h.add(s.page, s.items[i])
			continue
		}
		free = append(free, s.items[i])
	}
	return segment{page: s.page, items: free}
}

// condemn holds the keys of documents whose attempts are used up already.
func (l *lane) condemn(s segment) {
	known := l.f.w.attempts()
	if len(known) == 0 {
		return
	}
	for i := range s.items {
		key := string(s.items[i].Key)
		if l.held[key] != nil {
			continue
		}
		if n := countOf(known, documentName(&s.items[i])); n > 0 {
			// The items before it with the same key are handled first: they are
			// ahead of it in the key's queue.
			h := l.hold(key)
			h.err = errors.New("failed before this host had the lease")
		}
	}
}

// hold starts a queue for the key, due at once.
func (l *lane) hold(key string) *heldKey {
	if l.held == nil {
		l.held = map[string]*heldKey{}
	}
	now := l.f.w.r.clock.Now()
	h := &heldKey{key: key, backoff: l.f.w.retryBackoff(), due: now, since: l.f.w.r.moment()}
	l.held[key] = h
	l.f.w.r.suspects.Add(1)
	return h
}

func (h *heldKey) add(p *page, items ...Item) {
	if n := len(h.segments); n > 0 && h.segments[n-1].page == p {
		h.segments[n-1].items = append(h.segments[n-1].items, items...)
		return
	}
	h.segments = append(h.segments, segment{page: p, items: slices.Clone(items)})
}

// isolate holds the keys of the documents a handler named and finishes the rest
// of the segment. It returns the items to deliver again: none, unless nothing
// was named that is in the batch.
func (l *lane) isolate(s segment, poison *PoisonError) []Item {
	named := map[string]*heldKey{}
	slices.SortFunc(poison.Documents, func(a, b Poison) int { return a.Index - b.Index })
	from := map[string]int{}
	for _, d := range poison.Documents {
		if d.Index < 0 || d.Index >= len(s.items) {
			continue
		}
		key := string(s.items[d.Index].Key)
		if _, again := from[key]; again {
			continue
		}
		from[key] = d.Index
		h := l.hold(key)
		h.fail(l, &s.items[d.Index], d.Err, true)
		named[key] = h
	}
	if len(named) == 0 {
		return s.items
	}
	handled := 0
	for i := range s.items {
		if h := named[string(s.items[i].Key)]; h != nil && i >= from[h.key] {
			h.add(s.page, s.items[i])
			continue
		}
		handled++
	}
	l.f.finish(s.page, handled)
	return nil
}
