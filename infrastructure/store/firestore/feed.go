package firestore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/recordstore"
)

// Slots is the number of parts of the key space in the index of the events, and the maximum number
// of feed ranges. The index allows about 500 events a second in each.
const Slots = 16

func slotOf(key string) int64 { return int64(recordstore.Hash(key)) * Slots >> recordstore.HashBits }

// The bounds of the difference between an event's timestamp and its commit time; see doc.go.
const (
	window = 3 * commitLimit // a commit is at most this much later than the timestamp
	slack  = time.Second     // and at most this much earlier, by different clocks
)

// enough is the number of events at which a lagging search ends, and searchBytes that of their bytes. pageBytes
// limits a page. It is half of the memory that a processor uses for one range. A page of one commit may exceed it.
const (
	enough      = 1000
	searchBytes = 8 << 20
	pageBytes   = 4 << 20
)

// keySpace is an alias because an embedded field must not be exported.
type keySpace = recordstore.KeySpace

// Feed is the change feed of the events of a database; see the package documentation. It is safe
// for concurrent use.
type Feed struct {
	keySpace
	db *DB

	window, slack int64 // in microseconds
	enough        int
	reading       *recordstore.RangeCache[*reading]
}

// reading is the state of a range between reads. Times are in microseconds.
type reading struct {
	position int64       // events committed up to it were delivered
	ahead    []committed // found, not delivered yet
	upTo     int64       // events committed up to it were delivered or are in ahead
	from     int64       // events committed after upTo have at least this timestamp
	known    []int64     // the timestamps, from on, of events committed up to upTo
	more     bool        // the last search ended early
	searched int64       // the read time of the last search: nothing that it could see was committed later
}

// committed is an event with its commit time and its timestamp in the index.
type committed struct {
	commit, at int64
	key, name  string
	item       changefeed.Item
}

var (
	_ changefeed.Feed   = (*Feed)(nil)
	_ changefeed.Placer = (*Feed)(nil)
	_ changefeed.Sparse = (*Feed)(nil)
)

// NewFeed returns the feed of the events in db with 1, 2, 4, 8 or 16 feed ranges; 0 is 4. A higher
// number splits the leases of a running relay; with a lower one, the leases keep their ranges.
func NewFeed(db *DB, ranges int) (*Feed, error) {
	cut, err := recordstore.SplitKeySpace(ranges, Slots)
	if err != nil {
		return nil, fmt.Errorf("firestore: %w", err)
	}
	return &Feed{keySpace: cut, db: db, window: window.Microseconds(), slack: slack.Microseconds(), enough: enough, reading: recordstore.NewRangeCache[*reading](4 * Slots)}, nil
}

// Source implements changefeed.Feed.
func (f *Feed) Source(context.Context) (changefeed.Source, error) {
	return changefeed.Source{Host: "firestore", Database: f.db.source, Container: "events"}, nil
}

// LSNsHaveGaps implements changefeed.Sparse: LSNs are times.
func (*Feed) LSNsHaveGaps() {}

// Now implements changefeed.Feed. It returns a read time: a read sees everything that was committed
// before, and no later commit has an earlier time.
func (f *Feed) Now(ctx context.Context, _ changefeed.FeedRange) (string, error) {
	_, read, err := f.db.count(ctx, find(collectionEvents, byName, 1), 1)
	return recordstore.Token(uint64(read.UnixMicro())), asFault("find the end of the feed", err) //nolint:gosec // after 1970
}

// Read implements changefeed.Feed.
func (f *Feed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	request, err := recordstore.ParseRequest(f.keySpace, req)
	if err != nil {
		return nil, fmt.Errorf("firestore: %w", err)
	}
	start := int64(request.Position) //nolint:gosec // read as one
	if !request.Since.IsZero() {
		start = req.Since.UnixMicro() - 1
	}
	r := f.reading.Take(req.Range)
	if r == nil || r.position != start {
		r = &reading{position: start, upTo: start, from: start - f.window}
	}
	for first := true; len(r.ahead) == 0 && (first || r.more); first = false {
		if err := f.search(ctx, r, slotsOf(request.Low, request.High), req.Range); err != nil {
			return nil, asFault("read the events of range "+req.Range.String(), err)
		}
	}
	page := r.page(request.MaxItems, req.Continuation)
	f.reading.Keep(req.Range, r)
	return page, nil
}

// page returns about n events of ahead and moves the position past them.
func (r *reading) page(n int, continuation string) *changefeed.Page {
	page := &changefeed.Page{Continuation: continuation, CaughtUp: len(r.ahead) == 0}
	if page.CaughtUp {
		return page
	}
	page.EndLSN = r.ahead[len(r.ahead)-1].commit
	if r.more { // the end is later, and may have been read by a former owner of the range
		page.EndLSN = r.searched
	}
	for len(r.ahead) > 0 && (n > len(page.Items) && page.Bytes < pageBytes || r.ahead[0].commit == r.position) { // no commit is split
		e := r.ahead[0]
		r.position, r.ahead = e.commit, r.ahead[1:]
		page.Items = append(page.Items, e.item)
		page.Bytes += len(e.item.Raw)
	}
	page.Continuation = recordstore.Token(uint64(r.position)) //nolint:gosec // after 1970
	return page
}

// slotsOf returns the slots between two hashes, including one that is only partly between them.
// Its other events are filtered out by their keys.
func slotsOf(from, to int32) (slots []int64) {
	for s := int64(from) * Slots >> recordstore.HashBits; s<<recordstore.HashBits/Slots < int64(to); s++ {
		slots = append(slots, s)
	}
	return slots
}

// search finds the events that were committed after r.upTo.
//
// It counts first: the number shows whether there are new events, and its read time is the
// snapshot for reading them. New events usually follow the last known one; if the number shows
// otherwise, search reads from r.from.
func (f *Feed) search(ctx context.Context, r *reading, slots []int64, within changefeed.FeedRange) error {
	most := len(r.known) + f.enough
	n, read, err := f.db.count(ctx, events(slots, r.from), most)
	if err != nil {
		return err
	}
	start, kept := r.from, 0
	if known := len(r.known); known > 0 && n < most {
		start = r.known[known-1]
		kept, _ = slices.BinarySearch(r.known, start)
	}
	var found []committed
	if r.more = false; n == len(r.known) {
		kept = n
	} else if found, r.more, err = f.scan(ctx, slots, start, read, r.upTo); err == nil && start > r.from && (r.more || kept+len(found) != n) {
		kept = 0
		found, r.more, err = f.scan(ctx, slots, r.from, read, r.upTo)
	}
	if err != nil {
		return err
	}
	upTo := read.Add(-f.db.settle).UnixMicro()
	from := upTo - f.window
	if r.more {
		last := found[len(found)-1].at
		upTo, from = min(upTo, last-f.slack-1), min(from, last)
	}
	r.known = r.known[:kept]
	for _, e := range found {
		switch {
		case e.commit > upTo:
			from = min(from, e.at)
			continue
		case e.commit > r.upTo && within.Has(recordstore.Place(e.key)):
			r.ahead = append(r.ahead, e)
		}
		r.known = append(r.known, e.at)
	}
	r.upTo, r.from, r.searched = max(r.upTo, upTo), max(r.from, from), read.UnixMicro()
	gone, _ := slices.BinarySearch(r.known, r.from)
	if r.known = slices.Delete(r.known, 0, gone); r.more {
		r.known = nil // it may be incomplete
	}
	slices.SortFunc(r.ahead, func(a, b committed) int { return cmp.Or(cmp.Compare(a.commit, b.commit), cmp.Compare(a.name, b.name)) })
	return nil
}

// events queries the events of slots with a timestamp not before from, and more conditions.
func events(slots []int64, from int64, more ...condition) *pb.StructuredQuery {
	return find(collectionEvents, memberAt, 0, append([]condition{{"slot", oneOf, slots}, {memberAt, atLeast, time.UnixMicro(max(0, from))}}, more...)...)
}

// scan reads events in the order of the index, at the read time. If it lags far behind, it ends
// when it has enough events or bytes, and found one committed after upTo that no unread event can precede.
// Events committed up to upTo are without their documents.
func (f *Feed) scan(ctx context.Context, slots []int64, from int64, read time.Time, upTo int64) (found []committed, more bool, err error) {
	first, size := int64(math.MaxInt64), 0 // commit time after upTo, and bytes of these events
	err = f.db.scan(ctx, events(slots, from), read, func(d *pb.Document) bool {
		e := eventOf(d)
		if e.commit > upTo {
			first, size = min(first, e.commit), size+len(e.item.Raw)
		} else {
			e.item = changefeed.Item{}
		}
		found = append(found, e)
		more = (len(found) >= f.enough || size >= searchBytes) && e.at < read.UnixMicro()-f.window && first < e.at-f.slack
		return !more
	})
	return found, more, err
}

func eventOf(d *pb.Document) committed {
	commit := d.CreateTime.AsTime()
	key := text(d, "key")
	quoted, _ := json.Marshal(key) // never fails
	return committed{commit.UnixMicro(), moment(d, memberAt).UnixMicro(), key, d.Name, changefeed.Item{
		Raw: []byte(text(d, "document")), Key: quoted, LSN: commit.UnixMicro(), Timestamp: commit.Unix(),
	}}
}
