package changefeed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator/plan"
)

// counterFeed is a container whose physical ranges are counters: a change exists because its
// LSN is not above the counter. A range takes some hundred bytes, whatever its load.
type counterFeed struct {
	store *costedStore // counts the reads
	mu    sync.Mutex   // guards the fields below
	parts []*counter   // in order
	byMin map[string]*counter
}

type counter struct {
	changefeed.FeedRange
	base  float64 // changes until since
	since time.Time
	rate  float64 // changes a second after it
}

func (c *counter) lsn(now time.Time) int64 { return int64(c.base + c.rate*now.Sub(c.since).Seconds()) }

func (c *counter) setRate(now time.Time, rate float64) {
	c.base, c.since, c.rate = c.base+c.rate*now.Sub(c.since).Seconds(), now, rate
}

func newCounterFeed(ranges int, rate float64, store *costedStore) *counterFeed {
	f := &counterFeed{store: store, byMin: map[string]*counter{}}
	bound := func(i int) string { return fmt.Sprintf("%08X", uint64(i)*0x40000000/uint64(ranges)) }
	for i := range ranges {
		c := &counter{FeedRange: changefeed.FeedRange{Min: bound(i), Max: bound(i + 1)}, since: time.Now(), rate: rate}
		if i == 0 {
			c.Min = ""
		}
		if i == ranges-1 {
			c.Max = "FF"
		}
		f.parts, f.byMin[c.Min] = append(f.parts, c), c
	}
	return f
}

// grow sets the load of all ranges together. Ranges with more than most split.
func (f *counterFeed) grow(total, most float64) (ranges int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, rate := time.Now(), total/float64(len(f.parts))
	var parts []*counter
	for _, c := range f.parts {
		low, _ := strconv.ParseUint((c.Min + "00000000")[:8], 16, 64)
		high := uint64(0x40000000)
		if c.Max != "FF" {
			high, _ = strconv.ParseUint(c.Max, 16, 64)
		}
		c.setRate(now, rate)
		parts = append(parts, c)
		if rate <= most {
			continue
		}
		c.rate /= 2
		right := *c
		c.Max = fmt.Sprintf("%08X", (low+high)/2)
		right.Min = c.Max
		parts, f.byMin[right.Min] = append(parts, &right), &right
	}
	f.parts = parts
	return len(parts)
}

func (f *counterFeed) Source(context.Context) (changefeed.Source, error) {
	return changefeed.Source{Host: "scale", Database: "db", Container: "c"}, nil
}

func (f *counterFeed) Ranges(context.Context) (ranges []changefeed.FeedRange, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.parts {
		ranges = append(ranges, c.FeedRange)
	}
	return ranges, nil
}

func (f *counterFeed) Now(context.Context, changefeed.FeedRange) (string, error) { return `"0"`, nil }

var item = json.RawMessage(`{}`)

func (f *counterFeed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if err := pause(ctx, requestTime); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.byMin[req.Range.Min]
	if c.Max != req.Range.Max {
		return nil, f.split(req.Range)
	}
	after, _ := strconv.ParseInt(strings.Trim(req.Continuation, `"`), 10, 64) // "" is 0
	end := c.lsn(time.Now())
	n := min(max(0, end-after), int64(req.MaxItems))
	page := &changefeed.Page{EndLSN: end, Continuation: fmt.Sprintf("%q", strconv.FormatInt(after+n, 10)), CaughtUp: n == 0}
	for lsn := after + 1; lsn <= after+n; lsn++ {
		page.Items = append(page.Items, changefeed.Item{Raw: item, Key: item, LSN: lsn, Timestamp: time.Now().Unix()})
	}
	f.store.mu.Lock()
	f.store.total.Polls++
	f.store.total.PollRU += plan.FeedCharge(1, float64(n), float64(n)) // documents of 1 KB
	f.store.mu.Unlock()
	return page, nil
}

func (f *counterFeed) split(r changefeed.FeedRange) error {
	split := &changefeed.SplitError{Range: r}
	for _, c := range f.parts {
		if child := r.Intersect(c.FeedRange); !child.Empty() {
			split.Children = append(split.Children, child)
		}
	}
	return split
}
