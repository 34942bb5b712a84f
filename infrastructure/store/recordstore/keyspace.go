package recordstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"feedbox/changefeed"
)

// The key space. A key lies at its hash, 30 bits, which as eight digits of hexadecimal is
// its effective partition key: 00000000 to 3FFFFFFF.
const (
	HashBits   = 30
	boundWidth = 8
)

// Hash is where a key lies. It is part of what is stored, and never changes.
func Hash(key string) int32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x ^= x >> 33 // FNV alone leaves similar keys side by side
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return int32(x >> (64 - HashBits)) //nolint:gosec // 30 bits
}

// Place is Hash as an effective partition key.
func Place(key string) string { return place(int(Hash(key))) }

func place(hash int) string { return fmt.Sprintf("%0*X", boundWidth, hash) }

// KeySpace is the feed ranges that the key space is cut in, in their order. A feed embeds it. A
// relay that is configured for more of them splits its leases; for fewer, leases stay as narrow as
// they were.
type KeySpace []changefeed.FeedRange

// Cut cuts the key space into n equal feed ranges, a power of two of them up to most. No
// number is 4.
func Cut(n, most int) (KeySpace, error) {
	if n == 0 {
		n = 4
	}
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

// Request is a request for a page as a store goes by it.
type Request struct {
	changefeed.ReadRequest        // with what it leaves out, and Since only where there is no continuation
	Low, High              int32  // the hashes of the range: the first, and the one behind the last
	Position               uint64 // of the continuation; 0 is the start
}

// pageSize is how many events a page has where nobody says.
const pageSize = 100

// ParseRequest reads a request to a feed of a key space. Its range must lie within one of those
// that the space is cut in; else the error is a SplitError. Any other error is permanent.
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
		return 0, fmt.Errorf("%q is no bound of this store's ranges", bound)
	}
	return int32(min(n, 1<<HashBits)), nil //nolint:gosec // 31 bits
}

// parts returns what the physical ranges cut r into.
func parts(r changefeed.FeedRange, physical []changefeed.FeedRange) []changefeed.FeedRange {
	var cut []changefeed.FeedRange
	for _, p := range physical {
		if p.Overlaps(r) {
			cut = append(cut, p.Intersect(r))
		}
	}
	return cut
}

// Token is a continuation of a feed whose positions are numbers.
func Token(position uint64) string { return strconv.Quote(strconv.FormatUint(position, 10)) }

// parseToken reads what Token has written; "" is the start, 0.
func parseToken(continuation string) (uint64, error) {
	if continuation == "" {
		return 0, nil
	}
	text, err1 := strconv.Unquote(continuation)
	n, err2 := strconv.ParseUint(text, 10, 63)
	if err := cmp.Or(err1, err2); err != nil {
		return 0, fmt.Errorf("the continuation %q is none of this feed's: %w", continuation, err)
	}
	return n, nil
}
