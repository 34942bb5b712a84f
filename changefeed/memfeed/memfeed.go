// Package memfeed is an in-memory container with a change feed, for tests of handlers and
// of the processor itself.
//
// It behaves like the latest-version feed of Azure Cosmos DB: one entry per document,
// ordered by LSN; pages that never divide a transaction; physical ranges that split and
// merge. A Container is safe for concurrent use and starts no goroutines.
package memfeed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
)

var (
	_ changefeed.Feed   = (*Container)(nil)
	_ changefeed.Placer = (*Container)(nil)
)

// Options tune a Container. The zero value has one physical range.
type Options struct {
	// Ranges is the number of physical ranges, equal parts of the key space.
	// Default 1.
	Ranges int
	// Now is the clock of _ts. Default time.Now.
	Now func() time.Time
	// Before may delay or fail a Read, a Ranges or a Now call.
	Before func(ctx context.Context, req changefeed.ReadRequest) error
	// StaleRanges makes Ranges return the ranges before the last split or merge, like a
	// stale cache.
	StaleRanges bool
}

// Container holds documents.
type Container struct {
	opts Options

	mu     sync.Mutex // guards the fields below
	made   int        // how often the container was created again
	term   int        // how often it failed over
	lsn    int64
	log    []entry          // ordered by LSN; compact drops replaced versions
	latest map[string]int64 // document to the LSN of its latest version
	ranges []changefeed.FeedRange
	before []changefeed.FeedRange // ranges before their last change
}

type entry struct {
	doc  string // key and id
	epk  string
	item changefeed.Item
}

// Document is one write.
type Document struct {
	Key  string
	ID   string
	Data any            // the member "data"
	More map[string]any // further members
}

// New returns an empty container; nil options are the defaults.
func New(options *Options) *Container {
	c := &Container{latest: map[string]int64{}}
	if options != nil {
		c.opts = *options
	}
	if c.opts.Now == nil {
		c.opts.Now = time.Now
	}
	c.ranges = equalParts(cmp.Or(c.opts.Ranges, 1))
	c.before = c.ranges
	return c
}

// equalParts divides the keys 00..3F, which contain all hashes, into n ranges.
func equalParts(n int) []changefeed.FeedRange {
	ranges := make([]changefeed.FeedRange, n)
	bound := ""
	for i := range n {
		ranges[i].Min = bound
		bound = fmt.Sprintf("%08X", uint64(i+1)*0x40000000/uint64(n))
		ranges[i].Max = bound
	}
	ranges[n-1].Max = "FF"
	return ranges
}

// EPK returns the effective partition key of a key in this container.
func EPK(key string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return fmt.Sprintf("%016X", x>>2)
}

// Place implements changefeed.Placer.
func (c *Container) Place(key string) (string, error) { return EPK(key), nil }

// Put writes documents in one transaction and returns its LSN.
func (c *Container) Put(docs ...Document) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lsn++
	now := c.opts.Now().Unix()
	for _, d := range docs {
		members := map[string]any{"id": d.ID, "partitionKey": d.Key, "data": d.Data, "_lsn": c.lsn, "_ts": now}
		maps.Copy(members, d.More)
		raw, err := json.Marshal(members)
		if err != nil {
			panic("memfeed: " + err.Error()) // the caller's Data
		}
		name := d.Key + "\x00" + d.ID
		c.latest[name] = c.lsn
		c.log = append(c.log, entry{doc: name, epk: EPK(d.Key), item: changefeed.Item{
			Raw: raw, Key: []byte(strconv.Quote(d.Key)), LSN: c.lsn, Timestamp: now,
		}})
	}
	c.compact()
	return c.lsn
}

// compact drops replaced versions once there are many. Called with mu.
func (c *Container) compact() {
	if replaced := len(c.log) - len(c.latest); replaced >= max(1000, len(c.log)/2) {
		c.log = slices.DeleteFunc(c.log, func(e entry) bool { return c.latest[e.doc] != e.item.LSN })
	}
}

// Split divides the physical range of an effective partition key into two halves and
// reports whether it could.
func (c *Container) Split(epk string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.ranges {
		if !r.Has(epk) {
			continue
		}
		low, high := number(r.Min), number(r.Max)
		mid := low + (high-low)/2
		if mid == low {
			return false
		}
		bound := fmt.Sprintf("%08X", mid)
		c.replace(i, i+1, changefeed.FeedRange{Min: r.Min, Max: bound}, changefeed.FeedRange{Min: bound, Max: r.Max})
		return true
	}
	return false
}

// Merge joins the physical range of an effective partition key with the next one and
// reports whether there is one.
func (c *Container) Merge(epk string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.ranges {
		if r.Has(epk) && i+1 < len(c.ranges) {
			c.replace(i, i+2, changefeed.FeedRange{Min: r.Min, Max: c.ranges[i+1].Max})
			return true
		}
	}
	return false
}

// replace replaces physical ranges by parts. Called with mu.
func (c *Container) replace(from, to int, parts ...changefeed.FeedRange) {
	c.before, c.ranges = c.ranges, slices.Replace(slices.Clone(c.ranges), from, to, parts...)
}

// number reads the first eight digits of a bound, which lies in 00..40.
func number(bound string) uint64 {
	if bound == "FF" {
		return 0x40000000
	}
	n, _ := strconv.ParseUint((bound + strings.Repeat("0", 8))[:8], 16, 64) // hexadecimal by construction
	return n
}

// Source implements changefeed.Feed.
func (c *Container) Source(context.Context) (changefeed.Source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return changefeed.Source{Host: "memory", Database: "db", Container: c.id()}, nil
}

// id returns the container's resource id. Called with mu.
func (c *Container) id() string { return "coll" + strings.Repeat("'", c.made) }

// FailOver removes all changes after an LSN, as a failover to a delayed replica does.
func (c *Container) FailOver(lsn int64) {
	c.Restore(lsn)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term++
}

// Restore removes all changes after an LSN, as a restore from a backup within the account
// does: the container keeps its resource id.
func (c *Container) Restore(lsn int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lsn = min(c.lsn, lsn)
	c.log = slices.DeleteFunc(c.log, func(e entry) bool { return e.item.LSN > lsn })
	c.latest = map[string]int64{}
	for _, e := range c.log {
		c.latest[e.doc] = e.item.LSN
	}
}

// Recreate deletes the container and creates an empty one under its name.
func (c *Container) Recreate() {
	c.Restore(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
}

// Ranges implements changefeed.Feed.
func (c *Container) Ranges(ctx context.Context) ([]changefeed.FeedRange, error) {
	if err := c.call(ctx, changefeed.ReadRequest{}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opts.StaleRanges {
		return slices.Clone(c.before), nil
	}
	return slices.Clone(c.ranges), nil
}

// Now implements changefeed.Feed.
func (c *Container) Now(ctx context.Context, r changefeed.FeedRange) (string, error) {
	if err := c.call(ctx, changefeed.ReadRequest{Range: r}); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return token(c.lsn), nil
}

// Read implements changefeed.Feed.
func (c *Container) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if err := c.call(ctx, req); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.Container != "" && req.Container != c.id() {
		return nil, fmt.Errorf("memfeed: %w", changefeed.ErrRecreated)
	}
	if split := c.splitOf(req.Range); split != nil {
		return nil, split
	}
	after := int64(0)
	if req.Continuation != "" {
		var err error
		if after, err = strconv.ParseInt(strings.Trim(req.Continuation, `"`), 10, 64); err != nil || token(after) != req.Continuation {
			return nil, fmt.Errorf("memfeed: continuation %q is not a quoted LSN", req.Continuation)
		}
	}
	page := &changefeed.Page{RequestCharge: 1, EndLSN: c.lsn, Term: fmt.Sprint("0:", c.term), SessionToken: fmt.Sprintf("0:-1#%d", c.lsn)}
	from := sort.Search(len(c.log), func(i int) bool { return c.log[i].item.LSN > after })
	last := c.lsn
	for _, e := range c.log[from:] {
		if full(page.Items, req.MaxItems, e.item.LSN) {
			last = page.Items[len(page.Items)-1].LSN
			break
		}
		if c.latest[e.doc] != e.item.LSN || !req.Range.Has(e.epk) {
			continue
		}
		if req.Continuation == "" && e.item.Timestamp < req.Since.Unix() && !req.Since.IsZero() {
			continue
		}
		page.Items = append(page.Items, e.item)
		page.Bytes += len(e.item.Raw)
	}
	page.CaughtUp = len(page.Items) == 0
	page.Continuation = token(last)
	return page, nil
}

// full reports whether the page must end before an item of this LSN.
func full(items []changefeed.Item, most int, lsn int64) bool {
	return most > 0 && len(items) >= most && items[len(items)-1].LSN != lsn
}

// splitOf returns the physical ranges that serve r, if there are several. Called with mu.
func (c *Container) splitOf(r changefeed.FeedRange) *changefeed.SplitError {
	var children []changefeed.FeedRange
	for _, p := range c.ranges {
		if child := r.Intersect(p); !child.Empty() {
			children = append(children, child)
		}
	}
	if len(children) < 2 {
		return nil
	}
	return &changefeed.SplitError{Range: r, Children: children}
}

func (c *Container) call(ctx context.Context, req changefeed.ReadRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.opts.Before != nil {
		return c.opts.Before(ctx, req)
	}
	return nil
}

func token(lsn int64) string { return `"` + strconv.FormatInt(lsn, 10) + `"` }
