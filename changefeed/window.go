package changefeed

import (
	"context"
	"slices"
	"sync"
)

// window holds the pages of one range that were read and are not before the checkpoint,
// oldest first. The checkpoint is the low-water page: the last page up to which every item
// is done. doc.go draws it.
//
// A page after the low-water one releases its memory once its items are done, held or dropped. It is
// merged with a neighbor that has none in the lanes or held either. So a single held key keeps only its
// own items in memory.
type window struct {
	maxItems, maxBytes int
	// onDone receives the pages that the checkpoint may pass, in order.
	onDone func(done []*page)

	mu        sync.Mutex // guards the fields below, and the pages
	pages     []*page
	items     int // in memory and not done
	bytes     int // of pages in memory, and of held items
	held      int // items held
	heldBytes int
	unsaved   int // items done that are neither before the checkpoint nor in Lease.Ahead
	seq       uint64
	stopped   bool // read nothing more

	room signal // memory was released
}

// page is one page of the feed, or several merged pages whose items are done or dropped.
type page struct {
	seq          uint64
	first        uint64 // seq of the first merged page that is not done
	src          *Page  // nil once its memory was released
	token        string
	items        []Item // grouped by lane, within a lane in feed order; nil if src is
	count        int    // items, including those of merged pages
	open         int    // items not done
	inLanes      int    // items not done, and neither held nor dropped
	dropped      int    // items not done that the next session reads again
	unsaved      int    // see window
	resumed      bool   // Batch.Resumed
	lsn, changed int64  // of its last item
	oldest       Item   // its first change, for the lag: LSN and Timestamp only, because its memory is released
	charge       float64
	session      string
}

// aheadFactor bounds window.unsaved, in multiples of ReadAheadItems, because the redelivery
// after a crash could otherwise grow without limit. It matters for a manual handler, for a
// lane that is slower than the others by far, and if the record cannot list all held keys.
const aheadFactor = 100

func newWindow(o *Options, passed func([]*page)) *window {
	return &window{maxItems: o.ReadAheadItems, maxBytes: o.ReadAheadBytes, onDone: passed, room: newSignal()}
}

// full reports whether nothing more may be read.
func (w *window) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped || w.items >= w.maxItems || w.bytes >= w.maxBytes || w.unsaved >= aheadFactor*w.maxItems
}

// crowded reports whether held items alone fill the window.
func (w *window) crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held >= w.maxItems || w.heldBytes >= w.maxBytes
}

// heldShare is the share of one key in the memory, as a divisor. All held keys together have
// half of it, so that the others continue.
const heldShare = 16

// takes reports whether a held key that keeps some items in memory may keep one more.
func (w *window) takes(kept, bytes int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return kept <= w.maxItems/heldShare && bytes <= w.maxBytes/heldShare && w.held <= w.maxItems/2 && w.heldBytes <= w.maxBytes/2
}

// stop prevents all further reads.
func (w *window) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}

// waitRoom blocks until more may be read. It returns false if ctx ends.
func (w *window) waitRoom(ctx context.Context) bool {
	for w.full() && ctx.Err() == nil {
		select {
		case <-w.room:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// add appends a page that was read. The lanes deliver its items. done others were done in a
// session before; lsn and changed are those of its last item.
func (w *window) add(src *Page, done int, lsn, changed int64) *page {
	items := src.Items
	p := &page{
		src: src, token: src.Continuation, items: items, count: len(items) + done, open: len(items), inLanes: len(items),
		lsn: lsn, changed: changed, charge: src.RequestCharge, session: src.SessionToken,
	}
	for i := range items {
		if i == 0 || items[i].Timestamp < p.oldest.Timestamp {
			p.oldest = Item{LSN: items[i].LSN, Timestamp: items[i].Timestamp}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	p.seq, p.first = w.seq, w.seq
	w.pages = append(w.pages, p)
	w.items += len(items)
	w.bytes += src.Bytes
	w.update(p)
	return p
}

// finish counts n items of a lane as done.
func (w *window) finish(p *page, n int) { w.account(p, n, n, 0, 0) }

// hold copies an item out of its page, so that the page can be released.
func (w *window) hold(p *page, item *Item) Item {
	held := *item
	held.Raw, held.Key = slices.Clone(item.Raw), slices.Clone(item.Key)
	w.account(p, 0, 1, 1, len(held.Raw))
	return held
}

// forget counts an item of a held key as neither done nor in memory: it is read again.
func (w *window) forget(p *page) {
	w.mu.Lock()
	p.dropped++
	w.mu.Unlock()
	w.account(p, 0, 1, 0, 0)
}

// finishHeld counts a held item as done.
func (w *window) finishHeld(p *page, item *Item) { w.account(p, 1, 0, -1, -len(item.Raw)) }

// account updates the counts after items of p are done, items left their lanes, or the
// held items changed.
func (w *window) account(p *page, done, left, held, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.open -= done
	p.inLanes -= left
	p.unsaved += done
	w.unsaved += done
	w.items += held - left
	w.held += held
	w.heldBytes += bytes
	w.bytes += bytes
	w.update(p)
}

// settled returns the last of the pages whose items are all done, held or dropped, and no
// page before has another one: its highest LSN and number. done reports whether any item
// after the checkpoint is done.
func (w *window) settled() (lsn int64, seq uint64, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pages {
		if p.inLanes > 0 {
			return lsn, seq, done
		}
		lsn, seq, done = max(lsn, p.lsn), p.seq, done || p.count > p.open
	}
	return lsn, w.seq, done
}

// last returns the number of the last page that was read.
func (w *window) last() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq
}

// passed reports whether the checkpoint has passed a page, by its number.
func (w *window) passed(seq uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pages) == 0 || w.pages[0].first > seq
}

// save counts the items up to an LSN as saved.
func (w *window) save(lsn int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pages {
		if p.lsn <= lsn && p.inLanes == 0 {
			w.unsaved -= p.unsaved
			p.unsaved = 0
		}
	}
	w.room.send()
}

// update releases the memory that p does not need any more, and moves the checkpoint.
// Called with mu, so that the checkpoint only moves forward.
func (w *window) update(p *page) {
	if p.inLanes == 0 && p.src != nil {
		w.bytes -= p.src.Bytes
		release(p.src)
		p.src, p.items = nil, nil
	}
	switch {
	case !p.over():
	case w.pages[0].open == 0:
		w.advance()
	default:
		w.join(p)
	}
	w.room.send()
}

// over reports whether nothing more happens to the page in this session: its items are done or
// dropped.
func (p *page) over() bool { return p.inLanes == 0 && p.open == p.dropped }

// advance removes the done pages from the front.
func (w *window) advance() {
	n := slices.IndexFunc(w.pages, func(p *page) bool { return p.open > 0 })
	if n < 0 {
		n = len(w.pages)
	}
	for _, done := range w.pages[:n] {
		w.unsaved -= done.unsaved
	}
	w.onDone(w.pages[:n])
	w.pages = slices.Delete(w.pages, 0, n)
}

// join merges p, to which nothing more happens, with its neighbors.
func (w *window) join(p *page) {
	at := slices.Index(w.pages, p)
	for at > 0 && w.pages[at].follows(w.pages[at-1]) {
		at = w.merge(at - 1)
	}
	for at+1 < len(w.pages) && w.pages[at+1].follows(w.pages[at]) {
		at = w.merge(at)
	}
}

// merge merges a page into the next one, and returns the place of that.
func (w *window) merge(at int) int {
	w.pages[at+1].absorb(w.pages[at])
	w.pages = slices.Delete(w.pages, at, at+1)
	return at
}

// follows reports whether p can be merged with the page before it. A page that is done is not merged
// with one that is not, because the checkpoint may pass it. After a dropped item it passes none.
func (p *page) follows(before *page) bool {
	return p.over() && before.over() && (before.dropped > 0 || p.dropped == 0)
}

// absorb merges the page before p into p.
func (p *page) absorb(before *page) {
	p.count += before.count
	p.unsaved += before.unsaved
	if before.open > 0 {
		p.oldest, p.first = before.oldest, before.first
	}
	p.open += before.open
	p.dropped += before.dropped
	if before.lsn > p.lsn {
		p.lsn, p.changed = before.lsn, before.changed
	}
}

// oldest returns the first change of the oldest page that is not done. ok is false if all
// are done.
func (w *window) oldest() (change Item, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pages) == 0 {
		return Item{}, false
	}
	return w.pages[0].oldest, true // the page at the front is never done
}

func (w *window) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pages) > 0
}

// drop releases all memory. The items must not be in use any more.
func (w *window) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pages {
		if p.src != nil {
			release(p.src)
		}
	}
}

func release(p *Page) {
	if p != nil && p.Release != nil {
		p.Release()
	}
}

// last returns the LSN up to which a page ends the changes of the feed, and the time of its last change.
func (p *Page) last() (lsn, changed int64) {
	for i := range p.Items {
		if p.Items[i].LSN >= lsn {
			lsn, changed = p.Items[i].LSN, p.Items[i].Timestamp
		}
	}
	if p.Cut { // the next page continues the transaction, and may be done later
		lsn--
	}
	return lsn, changed
}
