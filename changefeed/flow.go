package changefeed

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// flow is one session of delivery: the window of pages in flight, the lanes that deliver
// their items first, and the keys held because one of their items is not done (held.go). A
// closed flow cannot be used again.
type flow struct {
	*delivery
	window *window
	seed   maphash.Seed

	mu        sync.Mutex // guards the fields below
	lanes     []lane
	held      map[string]*heldKey
	retrying  bool // the goroutine of retry runs
	budget    int  // items in the next retry
	pause     backoff
	resting   time.Time // nothing is retried before
	started   uint64    // highest page a lane has begun
	closing   bool      // begin no further page, retry nothing
	halted    bool      // the poison policy stopped the range: begin nothing
	past      past
	high      int64 // highest LSN read
	unordered bool  // LSNs decreased

	kick    signal         // check the held keys
	free    signal         // a lane has no work
	reread  signal         // only another session can deliver the next items of a held key
	running sync.WaitGroup // lanes with a goroutine, and retry
}

func newFlow(d *delivery) *flow {
	f := &flow{
		delivery: d, window: newWindow(&d.opts, d.progress), seed: maphash.MakeSeed(), held: map[string]*heldKey{},
		lanes: make([]lane, d.opts.Lanes), kick: newSignal(), free: newSignal(), reread: newSignal(),
		past: newPast(d.keeper.snapshot().Ahead, d.manual()),
	}
	f.budget, f.pause = f.maxRetry(), f.newBackoff()
	return f
}

// admit takes a page from the reader, in feed order, and queues its items in the lanes. A
// page without items only moves the checkpoint, after the pages before it.
func (f *flow) admit(src *Page) {
	if key := f.opts.Key; key != nil {
		for i := range src.Items {
			src.Items[i].Key = key(src.Items[i].Raw)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(src.Items)
	lsn, changed := src.last()
	src.Items = slices.DeleteFunc(src.Items, func(item Item) bool { return f.skip(&item) })
	parts := f.byLane(src)
	p := f.window.add(src, n-len(src.Items), lsn, changed)
	p.resumed = f.resumed
	for i, part := range parts {
		if len(part) > 0 {
			f.push(&f.lanes[i], segment{page: p, items: part})
		}
	}
	if f.past.passed == 0 && f.high > f.past.rest {
		f.past.passed = p.seq
	}
}

// byLane sorts the items of a page by lane, keeping the feed order within each lane, and
// returns the part of each lane.
func (f *flow) byLane(src *Page) [][]Item {
	if len(f.lanes) == 1 {
		return [][]Item{src.Items}
	}
	// A counting sort: stable, and one allocation for the whole page.
	counts := make([]int, len(f.lanes)+1)
	of := make([]int, len(src.Items))
	for i := range src.Items {
		of[i] = int(maphash.Bytes(f.seed, src.Items[i].Key) % uint64(len(f.lanes)))
		counts[of[i]+1]++
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	sorted := make([]Item, len(src.Items))
	next := slices.Clone(counts[:len(f.lanes)])
	for i := range src.Items {
		sorted[next[of[i]]] = src.Items[i]
		next[of[i]]++
	}
	src.Items = sorted
	parts := make([][]Item, len(f.lanes))
	for i := range parts {
		parts[i] = sorted[counts[i]:counts[i+1]]
	}
	return parts
}

// waitLane returns once a lane is idle, or after limit, because a page that is read while
// all lanes are busy would only wait for them.
func (f *flow) waitLane(ctx context.Context, limit time.Duration) {
	end := f.clock.Now().Add(limit)
	for left := limit; left > 0 && ctx.Err() == nil; left = end.Sub(f.clock.Now()) {
		f.mu.Lock()
		idle := slices.ContainsFunc(f.lanes, func(l lane) bool { return !l.alive })
		f.mu.Unlock()
		if idle {
			return
		}
		_ = sleep(ctx, f.clock, left, f.free) // the loop's condition checks ctx
	}
}

// stopping reports whether nothing may be retried.
func (f *flow) stopping() bool {
	if f.ctx.Err() != nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closing || f.halted
}

// close lets the lanes finish the pages that any of them has begun, and drops the rest.
// Failures are not retried. It returns when no handler runs. The delivery's context ends
// handlers that must stop.
func (f *flow) close() {
	f.mu.Lock()
	f.closing = true
	f.mu.Unlock()
	f.kick.send()
	f.running.Wait()
	if oldest, waiting := f.window.oldest(); waiting {
		f.noteDropped(oldest)
	}
	f.window.drop()
}

// halt begins nothing more until the worker starts a new flow.
func (f *flow) halt() {
	f.mu.Lock()
	f.halted = true
	f.mu.Unlock()
	f.window.stop()
}

// lane delivers its items for the first time, one batch after the other. A hash of the key
// selects the lane, so that all items of a key are in one lane. The goroutine of a lane
// exists only while there is work.
type lane struct {
	queue []segment // guarded by flow.mu
	alive bool      // guarded by flow.mu; the goroutine runs because there is work
}

// segment is a run of items of one page.
type segment struct {
	page  *page
	items []Item
}

// push queues work and starts the goroutine if there is none. Called with flow.mu.
func (f *flow) push(l *lane, s segment) {
	l.queue = append(l.queue, s)
	if !l.alive {
		l.alive = true
		f.running.Go(func() { f.deliver(l) })
	}
}

// deliver passes the segments of a lane to the handler until none is left.
func (f *flow) deliver(l *lane) {
	for s, ok := f.next(l); ok; s, ok = f.next(l) {
		if len(s.items) > 0 {
			f.settle(s, f.call(s.page, s.items, 1, s.page.resumed))
		}
	}
}

// next takes the next segment to deliver, without the items of held keys. The goroutine
// ends when ok is false.
func (f *flow) next(l *lane) (s segment, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(l.queue) == 0 || f.halted || f.closing && l.queue[0].page.seq > f.started {
		l.queue, l.alive = nil, false // the rest is delivered again from the checkpoint
		f.free.send()
		return segment{}, false
	}
	s = l.queue[0]
	l.queue[0] = segment{}
	l.queue = l.queue[1:]
	f.started = max(f.started, s.page.seq)
	return f.withhold(s), true
}
