package rows

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"

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
func Place(key string) string { return fmt.Sprintf("%0*X", boundWidth, Hash(key)) }

// Ranges cuts the key space into n equal feed ranges, a power of two of them up to most. No
// number is 4.
func Ranges(n, most int) ([]changefeed.FeedRange, error) {
	if n == 0 {
		n = 4
	}
	if n < 1 || n > most || n&(n-1) != 0 {
		return nil, fmt.Errorf("%d feed ranges: give 1, 2, 4 and so on up to %d", n, most)
	}
	ranges := make([]changefeed.FeedRange, n)
	bound := changefeed.FullRange().Min
	for i := range n {
		ranges[i].Min = bound
		bound = fmt.Sprintf("%0*X", boundWidth, (i+1)<<HashBits/n)
		ranges[i].Max = bound
	}
	ranges[n-1].Max = changefeed.FullRange().Max
	return ranges, nil
}

// Hashes are the first hash of a range and the one behind its last. The range must lie
// within one of ranges; else the error is a SplitError, or permanent.
func Hashes(r changefeed.FeedRange, ranges []changefeed.FeedRange) (from, to int32, err error) {
	if cut := parts(r, ranges); len(cut) > 1 {
		return 0, 0, &changefeed.SplitError{Range: r, Children: cut}
	}
	from, err1 := hashBound(r.Min)
	to, err2 := hashBound(r.Max)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, errors.Join(changefeed.ErrPermanent, fmt.Errorf("feed range %s: %w", r, err))
	}
	return from, to, nil
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

// ParseToken reads what Token has written; "" is the start, 0. Any other error is permanent.
func ParseToken(continuation string) (uint64, error) {
	if continuation == "" {
		return 0, nil
	}
	text, err := strconv.Unquote(continuation)
	if err == nil {
		var n uint64
		if n, err = strconv.ParseUint(text, 10, 63); err == nil {
			return n, nil
		}
	}
	return 0, errors.Join(changefeed.ErrPermanent, fmt.Errorf("the continuation %q is none of this feed's", continuation))
}
