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

// Slots is how many parts the key space has in the index of the events, and the most feed
// ranges. The index takes about 500 events a second in each.
const Slots = 16

func slotOf(key string) int64 { return int64(recordstore.Hash(key)) * Slots >> recordstore.HashBits }

// The bounds between the time that an event carries and that of its commit; see doc.go.
const (
	window = 3 * commitLimit // a commit is at most this much later
	slack  = time.Second     // and not earlier, but for clocks that differ by this much
)

// enough is how many events end a search that is far behind.
const enough = 1000

// keySpace is embedded without being a field that others see.
type keySpace = recordstore.KeySpace

// Feed is the change feed of the events of a database; the package documentation says how
// it finds them in order. It is safe for concurrent use.
type Feed struct {
	keySpace
	db *DB

	window, slack int64 // in microseconds
	enough        int
	reading       *recordstore.Memory[*reading]
}

// reading is what is known of a range. Times are in microseconds.
type reading struct {
	position int64       // what was committed up to it was shown
	ahead    []committed // found and not shown yet
	upTo     int64       // what was committed up to it was shown or is ahead
	from     int64       // what was committed behind upTo carries this time or a later one
	known    []int64     // the times in the index, from on, of what was committed up to upTo
	more     bool        // a search ended early
}

// committed is an event with the times of its commit and of its index.
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

// NewFeed returns the feed of the events in db, which is read by 1, 2, 4, 8 or 16 feed
// ranges; 0 is 4. More of them cut the leases of a running relay in parts; with fewer, the
// leases stay as narrow as they are.
func NewFeed(db *DB, ranges int) (*Feed, error) {
	cut, err := recordstore.Cut(ranges, Slots)
	if err != nil {
		return nil, fmt.Errorf("firestore: %w", err)
	}
	return &Feed{keySpace: cut, db: db, window: window.Microseconds(), slack: slack.Microseconds(), enough: enough, reading: recordstore.NewMemory[*reading](4 * Slots)}, nil
}

// Source implements changefeed.Feed.
func (f *Feed) Source(context.Context) (changefeed.Source, error) {
	return changefeed.Source{Host: "firestore", Database: f.db.source, Container: "events"}, nil
}

// LSNsHaveGaps implements changefeed.Sparse: they are times.
func (*Feed) LSNsHaveGaps() {}

// Now implements changefeed.Feed. A read sees all that was committed before it began, and
// nothing is committed at an earlier time afterwards.
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

// page takes about n events from what is ahead, and moves the position behind them.
func (r *reading) page(n int, continuation string) *changefeed.Page {
	page := &changefeed.Page{Continuation: continuation, CaughtUp: len(r.ahead) == 0}
	if page.CaughtUp {
		return page
	}
	page.EndLSN = r.ahead[len(r.ahead)-1].commit
	if r.more {
		page.EndLSN++ // at least
	}
	for len(r.ahead) > 0 && (n > len(page.Items) || r.ahead[0].commit == r.position) { // no commit is cut
		e := r.ahead[0]
		r.position, r.ahead = e.commit, r.ahead[1:]
		page.Items = append(page.Items, e.item)
		page.Bytes += len(e.item.Raw)
	}
	page.Continuation = recordstore.Token(uint64(r.position)) //nolint:gosec // after 1970
	return page
}

// slotsOf are the slots between two hashes, one that is cut as well: what of it lies outside
// is left out by its key.
func slotsOf(from, to int32) (slots []int64) {
	for s := int64(from) * Slots >> recordstore.HashBits; s<<recordstore.HashBits/Slots < int64(to); s++ {
		slots = append(slots, s)
	}
	return slots
}

// search looks for what was committed behind r.upTo.
//
// It counts first: the number tells whether there is anything to be read, and its read time
// is the snapshot in which it is read. What is new is usually behind the last that is known;
// if the number says otherwise, all is read that may be new.
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
	r.upTo, r.from = max(r.upTo, upTo), max(r.from, from)
	gone, _ := slices.BinarySearch(r.known, r.from)
	if r.known = slices.Delete(r.known, 0, gone); r.more {
		r.known = nil // some may be missing
	}
	slices.SortFunc(r.ahead, func(a, b committed) int { return cmp.Or(cmp.Compare(a.commit, b.commit), cmp.Compare(a.name, b.name)) })
	return nil
}

// events asks for those of slots that carry the time from or a later one.
func events(slots []int64, from int64) *pb.StructuredQuery {
	return find(collectionEvents, memberAt, 0, condition{"slot", oneOf, slots}, condition{memberAt, atLeast, time.UnixMicro(max(0, from))})
}

// scan reads events in the order of the index, as they were at read. It may end when it has
// enough of them and is far behind: then it knows of one that was committed behind upTo that
// nothing it has not read can precede.
func (f *Feed) scan(ctx context.Context, slots []int64, from int64, read time.Time, upTo int64) (found []committed, more bool, err error) {
	first := int64(math.MaxInt64) // to be committed behind upTo
	err = f.db.scan(ctx, events(slots, from), read, func(d *pb.Document) bool {
		e := eventOf(d)
		if found = append(found, e); e.commit > upTo {
			first = min(first, e.commit)
		}
		more = len(found) >= f.enough && e.at < read.UnixMicro()-f.window && first < e.at-f.slack
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
