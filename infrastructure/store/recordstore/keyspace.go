package recordstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"feedbox/changefeed"
)

// The key space. The effective partition key of a key is its hash of 30 bits, as eight
// hexadecimal digits: 00000000 to 3FFFFFFF.
const (
	HashBits   = 30
	boundWidth = 8
)

// Hash returns the position of a key in the key space. It must never change, because it is
// stored with the events.
func Hash(key string) int32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x ^= x >> 33 // FNV alone maps similar keys to neighbouring hashes
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return int32(x >> (64 - HashBits)) //nolint:gosec // 30 bits
}

// Place returns Hash as an effective partition key.
func Place(key string) string { return place(int(Hash(key))) }

func place(hash int) string { return fmt.Sprintf("%0*X", boundWidth, hash) }

// KeySpace is the ordered list of feed ranges into which the key space is divided. A feed embeds
// it. A relay that is configured for more ranges splits its leases; for fewer, the leases keep
// their ranges.
type KeySpace []changefeed.FeedRange

// SplitKeySpace divides the key space into n equal feed ranges. n is a power of two up to most;
// 0 is the default, 4.
func SplitKeySpace(n, most int) (KeySpace, error) {
	n = cmp.Or(n, 4)
	if n < 1 || n > most || n&(n-1) != 0 {
		return nil, fmt.Errorf("%d feed ranges: give 1, 2, 4 and so on up to %d", n, most)
	}
	ranges := make(KeySpace, n)
	bound := changefeed.FullRange().Min
	for i := range n {
		ranges[i].Min = bound
		bound = place((i + 1) << HashBits / n)
		ranges[i].Max = bound
	}
	ranges[n-1].Max = changefeed.FullRange().Max
	return ranges, nil
}

// Ranges implements changefeed.Feed.
func (s KeySpace) Ranges(context.Context) ([]changefeed.FeedRange, error) { return s, nil }

// Place implements changefeed.Placer.
func (KeySpace) Place(key string) (string, error) { return Place(key), nil }

// Request is a read request, parsed for a store.
type Request struct {
	changefeed.ReadRequest        // with defaults; Since is zero if there is a continuation
	Low, High              int32  // the hashes of the range, without High
	Position               uint64 // of the continuation; 0 is the start
}

const pageSize = 100

// ParseRequest parses a request to a feed of a key space. If its range is not within one range
// of the key space, the error is a SplitError. Any other error is permanent.
func ParseRequest(s KeySpace, req changefeed.ReadRequest) (r Request, err error) {
	r.ReadRequest = req
	if r.MaxItems <= 0 {
		r.MaxItems = pageSize
	}
	if req.Continuation != "" {
		r.Since = time.Time{}
	}
	if cut := parts(req.Range, s); len(cut) > 1 {
		return r, &changefeed.SplitError{Range: req.Range, Children: cut}
	}
	var err1, err2, err3 error
	r.Low, err1 = hashBound(req.Range.Min)
	r.High, err2 = hashBound(req.Range.Max)
	r.Position, err3 = parseToken(req.Continuation)
	if err := errors.Join(err1, err2, err3); err != nil {
		return r, errors.Join(changefeed.ErrPermanent, fmt.Errorf("feed range %s: %w", req.Range, err))
	}
	return r, nil
}

func hashBound(bound string) (int32, error) {
	for len(bound) < boundWidth {
		bound += "0"
	}
	n, err := strconv.ParseUint(bound, 16, 64)
	if err != nil || len(bound) > boundWidth {
		return 0, fmt.Errorf("%q is not a bound of this store's ranges", bound)
	}
	return int32(min(n, 1<<HashBits)), nil //nolint:gosec // 31 bits
}

// parts returns the intersections of r with the physical ranges.
func parts(r changefeed.FeedRange, physical []changefeed.FeedRange) []changefeed.FeedRange {
	var cut []changefeed.FeedRange
	for _, p := range physical {
		if p.Overlaps(r) {
			cut = append(cut, p.Intersect(r))
		}
	}
	return cut
}

// Token returns the continuation for a position.
func Token(position uint64) string { return strconv.Quote(strconv.FormatUint(position, 10)) }

// parseToken is the inverse of Token; "" is the start, 0.
func parseToken(continuation string) (uint64, error) {
	if continuation == "" {
		return 0, nil
	}
	text, err1 := strconv.Unquote(continuation)
	n, err2 := strconv.ParseUint(text, 10, 63)
	if err := cmp.Or(err1, err2); err != nil {
		return 0, fmt.Errorf("the continuation %q does not belong to this feed: %w", continuation, err)
	}
	return n, nil
}

// RangeCache keeps a value for each feed range from one read to the next. A feed must work
// without the value, too: the cache may lose it. It is safe for concurrent use.
type RangeCache[T any] struct {
	most int

	mu     sync.Mutex // guards values
	values map[changefeed.FeedRange]T
}

// NewRangeCache returns an empty cache of about most ranges.
func NewRangeCache[T any](most int) *RangeCache[T] {
	return &RangeCache[T]{most: most, values: map[changefeed.FeedRange]T{}}
}

// Take removes the value of a range and returns it, or the zero value if there is none. Two
// concurrent reads of a range therefore never share a value.
func (c *RangeCache[T]) Take(r changefeed.FeedRange) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	value := c.values[r]
	delete(c.values, r)
	return value
}

// Keep stores the value of a range.
func (c *RangeCache[T]) Keep(r changefeed.FeedRange, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.values) > c.most { // ranges that were split or merged are never read again
		clear(c.values)
	}
	c.values[r] = value
}
