package changefeed_test

import (
	"context"
	"encoding/json"
	"errors"
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
	store  *costedStore // counts the reads
	mu     sync.Mutex   // guards the fields below
	parts  []*counter   // in order
	byMin  map[string]*counter
	budget float64 // request units of a range for reads in a second; 0: no limit
}

type counter struct {
	changefeed.FeedRange
	base  float64 // changes until since
	since time.Time
	rate  float64 // changes a second after it

	second int64   // of the clock
	spent  float64 // request units in it
}

func (c *counter) lsn(now time.Time) int64 { return int64(c.base + c.rate*now.Sub(c.since).Seconds()) }

// spend charges a read, or returns how long a range without a budget left has to wait. As in the
// service, a request may exceed what is left.
func (c *counter) spend(now time.Time, units, budget float64) (wait time.Duration) {
	if c.second != now.Unix() {
		c.second, c.spent = now.Unix(), 0
	}
	if budget > 0 && c.spent >= budget {
		return now.Truncate(time.Second).Add(time.Second).Sub(now)
	}
	c.spent += units
	return 0
}

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

// throttle limits the request units of each range for reads in a second.
func (f *counterFeed) throttle(budget float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.budget = budget
}

// age returns the time since a change of the range that begins at min was committed. ok is false
// if the load has changed since.
func (f *counterFeed) age(low string, lsn int64) (age time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.byMin[low]
	if c.rate == 0 || float64(lsn) <= c.base {
		return 0, false
	}
	committed := c.since.Add(time.Duration((float64(lsn) - c.base) / c.rate * float64(time.Second)))
	return time.Since(committed), true
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
	units := plan.FeedCharge(1, float64(n), float64(n)) // documents of 1 KB
	wait := c.spend(time.Now(), units, f.budget)
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.store.total.Polls++
	if wait > 0 {
		f.store.total.Throttled++
		return nil, &changefeed.ThrottledError{RetryAfter: wait, Err: errors.New("the range has no request units left in this second")}
	}
	f.store.total.PollRU += units
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
