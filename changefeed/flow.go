package changefeed

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// flow is what one range has in hand: the window of pages read and not yet
// finished, oldest first, and the lanes that work on them. The checkpoint is the
// low-water page: the last page before which everything is finished.
//
//	feed ─▶ admit ─▶ window [p3 p4 p5 p6] ─▶ lanes ─▶ handler
//	                         ▲ finished: p3, p5    checkpoint: behind p3
//
// The reader admits, lanes finish; a flow is done for good once closed.
type flow struct {
	w     *worker
	limit struct{ items, bytes int }
	seed  maphash.Seed

	mu      sync.Mutex // guards what follows
	window  []*page
	lanes   []*lane
	items   int // in window, unfinished pages only
	bytes   int
	started uint64 // highest page a lane has begun
	seq     uint64 // of the last page admitted
	closing bool   // begin no page that is not begun, retry nothing
	halted  bool   // poison policy stop: begin nothing

	room    chan struct{}  // capacity 1: a page was finished
	free    chan struct{}  // capacity 1: a lane has nothing to begin
	closed  chan struct{}  // closed by close
	running sync.WaitGroup // lanes with a goroutine
}

// page is one page in the window.
type page struct {
	seq    uint64
	src    *Page
	items  []Item // permuted by lane; within a lane in feed order
	open   int    // items not finished
	weight int    // bytes
}

func newFlow(w *worker) *flow {
	f := &flow{w: w, seed: maphash.MakeSeed(), room: make(chan struct{}, 1), free: make(chan struct{}, 1), closed: make(chan struct{})}
	f.limit.items, f.limit.bytes = w.r.opts.ReadAheadItems, w.r.opts.ReadAheadBytes
	f.lanes = make([]*lane, w.r.opts.Lanes)
	for i := range f.lanes {
		f.lanes[i] = newLane(f)
	}
	return f
}

// waitRoom returns once another page may be read.
func (f *flow) waitRoom(ctx context.Context) error {
	for {
		f.mu.Lock()
		free := f.items < f.limit.items && f.bytes < f.limit.bytes && !f.halted
		f.mu.Unlock()
		if free {
			return nil
		}
		select {
		case <-f.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// admit takes a page from the reader, in feed order, and hands its items to the
// lanes. A page without items only moves the checkpoint, in its turn.
func (f *flow) admit(src *Page) {
	items := src.Items
	if key := f.w.r.opts.Key; key != nil {
		for i := range items {
			items[i].Key = key(items[i].Raw)
		}
	}
	f.mu.Lock()
	if f.closing {
		f.mu.Unlock()
		release(src)
		return
	}
	f.seq++
	p := &page{seq: f.seq, src: src, items: items, open: len(items), weight: src.Bytes}
	f.window = append(f.window, p)
	f.items += len(items)
	f.bytes += p.weight
	f.route(p)
	done, moved := f.sweep()
	f.mu.Unlock()
	f.settle(done, moved)
}

// route gives each lane its items of the page, in feed order. Called with mu.
func (f *flow) route(p *page) {
	if len(p.items) == 0 {
		return
	}
	if len(f.lanes) == 1 {
		f.lanes[0].push(segment{page: p, items: p.items})
		return
	}
	// A counting sort by lane: stable, and one allocation for the whole page.
	counts := make([]int, len(f.lanes)+1)
	of := make([]int, len(p.items))
	for i := range p.items {
		of[i] = int(maphash.Bytes(f.seed, p.items[i].Key) % uint64(len(f.lanes)))
		counts[of[i]+1]++
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	sorted := make([]Item, len(p.items))
	next := append([]int(nil), counts[:len(f.lanes)]...)
	for i := range p.items {
		sorted[next[of[i]]] = p.items[i]
		next[of[i]]++
	}
	p.items = sorted
	for i, l := range f.lanes {
		if part := sorted[counts[i]:counts[i+1]]; len(part) > 0 {
			l.push(segment{page: p, items: part})
		}
	}
}

// finish counts n items of the page as handled, or as dealt with for good.
func (f *flow) finish(p *page, n int) {
	f.mu.Lock()
	p.open -= n
	done, moved := f.sweep()
	f.mu.Unlock()
	f.settle(done, moved)
}

// sweep takes the finished pages off the front of the window. Called with mu.
func (f *flow) sweep() (done []*page, moved bool) {
	n := 0
	for n < len(f.window) && f.window[n].open == 0 {
		f.items -= len(f.window[n].items)
		f.bytes -= f.window[n].weight
		n++
	}
	if n == 0 {
		return nil, false
	}
	done = append(done, f.window[:n]...)
	f.window = append(f.window[:0], f.window[n:]...)
	// The checkpoint moves under mu, so that it can only move forward.
	f.w.progress(done)
	return done, true
}

// settle gives the pages' memory back and lets the reader go on.
func (f *flow) settle(done []*page, moved bool) {
	for _, p := range done {
		release(p.src)
	}
	if moved {
		select {
		case f.room <- struct{}{}:
		default:
		}
	}
}

// laneFree tells waitLane. Called with mu.
func (f *flow) laneFree() {
	select {
	case f.free <- struct{}{}:
	default:
	}
}

// waitLane returns once some lane has nothing to do, or after most: what is read while
// all of them work would only wait for them.
func (f *flow) waitLane(ctx context.Context, most time.Duration, wake <-chan struct{}) error {
	a := newAlarm(f.w.r.clock)
	a.set(most)
	defer a.off()
	for {
		f.mu.Lock()
		all := !slices.ContainsFunc(f.lanes, func(l *lane) bool { return !l.works && len(l.queue) == 0 })
		f.mu.Unlock()
		if !all {
			return nil
		}
		select {
		case <-f.free:
		case <-a.ring:
			return nil
		case <-wake:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// oldest is the first item not finished, for the lag; nil if there is none.
func (f *flow) oldest() (changed int64, lsn int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.window {
		for i := range p.items {
			if !ok || p.items[i].Timestamp < changed {
				changed, lsn, ok = p.items[i].Timestamp, p.items[i].LSN, true
			}
		}
		if ok {
			return changed, lsn, ok
		}
	}
	return 0, 0, false
}

// busy reports whether anything is in hand.
func (f *flow) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.items > 0
}

// close lets lanes finish the pages they have begun and drop the rest; nothing
// that fails is tried again. It returns when no handler runs. Handlers that must
// not go on are ended through the worker's context.
func (f *flow) close() {
	f.mu.Lock()
	f.closing = true
	close(f.closed)
	for _, l := range f.lanes {
		l.nudge()
	}
	f.mu.Unlock()
	f.running.Wait()
	f.mu.Lock()
	left := f.window
	f.window, f.items, f.bytes = nil, 0, 0
	f.mu.Unlock()
	for _, p := range left {
		release(p.src)
	}
}

// halt begins nothing more until the worker starts a new flow.
func (f *flow) halt() {
	f.mu.Lock()
	f.halted = true
	f.mu.Unlock()
}

func release(p *Page) {
	if p.Release != nil {
		p.Release()
		p.Release = nil
	}
}
