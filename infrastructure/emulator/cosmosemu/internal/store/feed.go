package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// FeedQuery asks for the changes of one physical partition.
type FeedQuery struct {
	Range    string     // id
	After    uint64     // changes with a greater LSN
	Since    time.Time  // changes not older than this; zero: all
	Window   *epk.Range // only keys inside, nil: all of the range
	Part     *Partition // only this logical partition, nil: all
	MaxItems int        // a page ends at the first transaction that reaches it; 0: no limit
	MaxBytes int        // the same in bytes of documents; 0: no limit
}

// FeedPage is a page of the change feed in latest-version mode.
type FeedPage struct {
	Documents []byte // JSON texts, each with its _lsn, separated by commas
	Count     int
	LSN       uint64 // where the next page starts: After of the next query
}

// Feed reads one page, appended to dst. Changes come in the order of their LSN,
// one per document (its latest), and no transaction is cut by a page's end.
// ErrRangeGone if the range was split, merged or never existed.
func (c *Container) Feed(dst []byte, q FeedQuery) (FeedPage, error) {
	state := c.state.Load()
	rng, err := state.Topology.Find(q.Range)
	if err != nil {
		return FeedPage{}, err
	}
	page := FeedPage{Documents: dst, LSN: max(q.After, c.LSN())} // read before the view, which may hold more
	v := c.store.view()
	defer v.release()
	cur, err := c.openFeed(v, rng, q.After)
	if err != nil {
		return FeedPage{}, err
	}
	f := &feedReader{c: c, q: &q, page: &page, start: len(dst), now: c.store.now().UnixMilli(), ttl: lifetime(state.Definition.DefaultTTL)}
	f.window = f.narrow(rng, cur)
	if !q.Since.IsZero() {
		f.since = q.Since.UnixMilli()
	}
	err = f.run(cur)
	return page, errors.Join(err, f.close(), cur.close())
}

type feedReader struct {
	c      *Container
	q      *FeedQuery
	page   *FeedPage
	docs   *pebble.Iterator // opened with the first document
	key    []byte           // scratch
	start  int              // of this page in page.Documents
	last   uint64           // LSN of the last document
	window *epk.Range       // nil: every entry counts
	since  int64            // Unix ms
	now    int64            // Unix ms
	ttl    lifetime
}

// narrow returns the window entries must lie in, nil if all do.
func (f *feedReader) narrow(rng *Range, cur *feedCursor) *epk.Range {
	bounds := rng.Bounds()
	filtered := len(cur.sources) > 1
	if f.q.Window != nil {
		bounds, _ = bounds.Intersect(*f.q.Window)
		filtered = true
	}
	if f.q.Part != nil {
		bounds, _ = bounds.Intersect(epk.Point(f.q.Part.EPK))
		filtered = true
	}
	if !filtered {
		return nil
	}
	return &bounds
}

func (f *feedReader) run(cur *feedCursor) error {
	for cur.valid() {
		lsn := cur.lsn()
		if f.full() && lsn != f.last {
			f.page.LSN = f.last
			return nil
		}
		entry, err := decodeFeedEntry(cur.value())
		if err != nil {
			return err
		}
		if f.wants(&entry) {
			if err := f.add(cur, entry.document, lsn); err != nil {
				return err
			}
		}
		cur.next()
	}
	f.page.LSN = max(f.page.LSN, f.last)
	return nil
}

func (f *feedReader) full() bool {
	return f.page.Count > 0 &&
		(f.q.MaxItems > 0 && f.page.Count >= f.q.MaxItems ||
			f.q.MaxBytes > 0 && len(f.page.Documents)-f.start >= f.q.MaxBytes)
}

func (f *feedReader) wants(e *feedEntry) bool {
	return e.millis >= f.since && !f.ttl.expired(e.stamp, f.now) && (f.window == nil || f.window.Contains(e.epk))
}

// add appends one document to the page.
func (f *feedReader) add(cur *feedCursor, number, lsn uint64) (err error) {
	if f.docs == nil {
		if f.docs, err = cur.documents(); err != nil {
			return err
		}
	}
	f.key = f.c.space.document(f.key[:0], number)
	if !f.docs.SeekGE(f.key) || !bytes.Equal(f.docs.Key(), f.key) {
		if err := f.docs.Error(); err != nil {
			return fmt.Errorf("read document: %w", asCorruption(err))
		}
		return fmt.Errorf("%w: document %d is in the feed but not in the store", ErrCorrupt, number)
	}
	rec, err := decodeRecord(f.docs.Value())
	if err != nil {
		return err
	}
	if f.q.Part != nil && !bytes.HasPrefix(rec.encoded, f.q.Part.encoded) {
		return nil
	}
	dst := f.page.Documents
	if f.page.Count > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, rec.body[:len(rec.body)-1]...)
	dst = append(dst, `,"_lsn":`...)
	dst = strconv.AppendUint(dst, lsn, 10)
	dst = append(dst, '}')
	f.page.Documents = dst
	f.page.Count++
	f.last = lsn
	return nil
}

func (f *feedReader) close() error {
	if f.docs == nil {
		return nil
	}
	return f.docs.Close()
}

// feedCursor walks the segments of a range and its ancestors in the order of
// their positions.
type feedCursor struct {
	space   keySpace
	sources []*pebble.Iterator
	at      int // index of the source with the smallest position, -1 at the end
}

func (c *Container) openFeed(v view, rng *Range, after uint64) (*feedCursor, error) {
	cur := &feedCursor{space: c.space}
	segments := append([]uint32{rng.Segment}, rng.History...)
	for _, segment := range segments {
		options := &pebble.IterOptions{
			LowerBound: c.space.feed(nil, position{segment: segment, lsn: after + 1}),
			UpperBound: c.space.segment(nil, segment+1),
		}
		var it *pebble.Iterator
		var err error
		if len(cur.sources) == 0 {
			it, err = v.NewIter(options)
		} else { // the same state as the first one
			it, err = cur.sources[0].Clone(pebble.CloneOptions{IterOptions: options})
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read feed: %w", asCorruption(err)), cur.close())
		}
		it.First()
		cur.sources = append(cur.sources, it)
	}
	cur.choose()
	return cur, nil
}

// documents opens an iterator over the container's documents in the same state.
func (cur *feedCursor) documents() (*pebble.Iterator, error) {
	lower := cur.space.prefix(nil, kindDocument)
	it, err := cur.sources[0].Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{LowerBound: lower, UpperBound: after(lower)}})
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", asCorruption(err))
	}
	return it, nil
}

func (cur *feedCursor) choose() {
	cur.at = -1
	for i, it := range cur.sources {
		if it.Valid() && (cur.at < 0 || bytes.Compare(suffix(it), suffix(cur.sources[cur.at])) < 0) {
			cur.at = i
		}
	}
}

func suffix(it *pebble.Iterator) []byte {
	key := it.Key()
	return key[len(key)-feedSuffix:]
}

func (cur *feedCursor) valid() bool   { return cur.at >= 0 }
func (cur *feedCursor) lsn() uint64   { return binary.BigEndian.Uint64(suffix(cur.sources[cur.at])) }
func (cur *feedCursor) value() []byte { return cur.sources[cur.at].Value() }

func (cur *feedCursor) next() {
	if valid := cur.sources[cur.at].Next(); !valid || len(cur.sources) > 1 {
		cur.choose()
	}
}

func (cur *feedCursor) close() error {
	var errs []error
	for _, it := range cur.sources {
		errs = append(errs, it.Close())
	}
	return asCorruption(errors.Join(errs...))
}
