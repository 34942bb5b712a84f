package store

import (
	"bytes"
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
	Since    time.Time  // changes after the second of this time; zero: all
	Window   *epk.Range // only keys inside, nil: all of the range
	Part     *Partition // only this logical partition, nil: all
	MaxItems int        // a page ends at the first transaction that reaches it; 0: no limit
	MaxBytes int        // as MaxItems, in bytes of documents; 0: no limit
	Versions bool       // all-versions-and-deletes mode
	Metadata bool       // wrap documents in latest-version mode as {"current":{},"metadata":{}}
	At       *Moment    // nil: now
}

// FeedPage is a page of the change feed.
type FeedPage struct {
	// Documents are JSON texts, separated by commas: documents with their _lsn, or in
	// all-versions-and-deletes mode the entries of versions.go.
	Documents []byte
	Count     int
	LSN       uint64 // the After of the query for the next page
	End       uint64 // a lower bound of the range's last LSN in the state that was read
}

// Feed reads one page and appends it to dst. Changes are in the order of their LSN, one per
// document (its latest) unless q.Versions is set. A page never cuts a transaction. Feed
// returns ErrRangeGone if the range was split, merged or never existed.
func (c *Container) Feed(dst []byte, q FeedQuery) (FeedPage, error) {
	state := c.state.Load()
	rng, err := state.Topology.Find(q.Range)
	if err != nil {
		return FeedPage{}, err
	}
	// The end of an empty page is read before the view is taken, because the view may
	// contain later commits.
	at := q.At.of(rng)
	page := FeedPage{Documents: dst, End: at.LSN(rng)}
	page.LSN = max(q.After, page.End)
	v := c.store.viewAt(at)
	defer v.release()
	if q.Versions {
		err := c.readVersions(v, rng, &q, &page)
		return page, err
	}
	h, err := c.openHistory(v, rng.segments(), position{lsn: q.After + 1}, kindDocument, kindFeed)
	if err != nil {
		return FeedPage{}, err
	}
	f := &feedReader{
		history: h, c: c, q: &q, page: &page, start: len(dst), window: q.window(rng),
		now: c.store.now().UnixMilli(), ttl: lifetime(state.Definition.DefaultTTL),
	}
	if !q.Since.IsZero() {
		// The changes of that second are omitted, because the .NET SDK's GatewayTests expect it.
		f.since = q.Since.Truncate(time.Second).Add(time.Second).UnixMilli()
	}
	err = f.run()
	if f.docs != nil {
		err = errors.Join(err, f.docs.Close())
	}
	return page, errors.Join(err, h.close())
}

// window returns the window of effective partition keys to read; nil if it includes every
// entry of the range's own segment.
func (q *FeedQuery) window(rng *Range) *epk.Range {
	if len(rng.History) == 0 && q.Window == nil && q.Part == nil {
		return nil
	}
	bounds := rng.Bounds()
	if q.Window != nil {
		bounds, _ = bounds.Intersect(*q.Window)
	}
	if q.Part != nil {
		bounds, _ = bounds.Intersect(epk.Point(q.Part.EPK))
	}
	return &bounds
}

type feedReader struct {
	*history
	c      *Container
	q      *FeedQuery
	page   *FeedPage
	docs   *pebble.Iterator // opened for the first replaced document, because many pages have none
	key    []byte           // scratch
	start  int              // of this page in page.Documents
	last   uint64           // LSN of the last document
	window *epk.Range
	since  int64 // Unix ms
	now    int64 // Unix ms
	ttl    lifetime
}

func (f *feedReader) run() error {
	for ; f.valid(); f.next() {
		// The page ends only between two LSNs, because it must not cut a transaction.
		if f.q.full(f.page, f.start) && f.lsn() != f.last {
			f.page.LSN = f.last
			return nil
		}
		var err error
		if f.kind() == kindDocument {
			err = f.created()
		} else {
			err = f.replaced()
		}
		if err != nil {
			return err
		}
	}
	f.page.LSN = max(f.page.LSN, f.last)
	return nil
}

// full reports whether a page whose text begins at start may end here.
func (q *FeedQuery) full(page *FeedPage, start int) bool {
	return page.Count > 0 &&
		(q.MaxItems > 0 && page.Count >= q.MaxItems ||
			q.MaxBytes > 0 && len(page.Documents)-start >= q.MaxBytes)
}

// created adds a document at the position of its creation. A document that was replaced
// later has a feed entry instead.
func (f *feedReader) created() error {
	rec, err := decodeRecord(f.value())
	if err != nil {
		return err
	}
	if !rec.replaced() && f.wants(rec.stamp, rec.epk) {
		f.add(&rec)
	}
	return nil
}

// replaced adds the document of a feed entry.
func (f *feedReader) replaced() error {
	entry, err := decodeFeedEntry(f.value())
	if err != nil || !f.wants(entry.stamp, entry.epk) {
		return err
	}
	if f.docs == nil {
		if f.docs, err = f.newIterator(kindDocument); err != nil {
			return err
		}
	}
	if f.key, err = f.c.find(f.docs, f.key, entry.created); err != nil {
		return err
	}
	rec, err := decodeRecord(f.docs.Value())
	if err != nil {
		return err
	}
	f.add(&rec)
	return nil
}

func (f *feedReader) wants(s stamp, key []byte) bool {
	return s.millis >= f.since && !f.ttl.expired(s, f.now) && (f.window == nil || f.window.Contains(key))
}

// add appends one document to the page.
func (f *feedReader) add(rec *record) {
	if f.q.Part != nil && !bytes.HasPrefix(rec.encoded, f.q.Part.encoded) {
		return
	}
	dst := f.page.Documents
	if f.page.Count > 0 {
		dst = append(dst, ',')
	}
	if f.q.Metadata {
		dst = append(dst, `{"current":`...)
	}
	dst = append(dst, rec.body[:len(rec.body)-1]...)
	dst = append(dst, `,"_lsn":`...)
	dst = strconv.AppendUint(dst, rec.written.lsn, 10)
	dst = append(dst, '}')
	if f.q.Metadata {
		dst = fmt.Appendf(dst, `,"metadata":{"lsn":%d,"crts":%d}}`, rec.written.lsn, rec.millis/1000)
	}
	f.page.Documents = dst
	f.page.Count++
	f.last = rec.written.lsn
}
