package postgres

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
	hashBits   = 30
	boundWidth = 8
)

// hashOf is where a key lies. It is part of what is stored, and never changes.
func hashOf(key string) int32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x ^= x >> 33 // FNV alone leaves similar keys side by side
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return int32(x >> (64 - hashBits)) //nolint:gosec // 30 bits
}

// MaxRanges is the most feed ranges a database can be read by.
const MaxRanges = 1024

// equalParts cuts the key space into n ranges.
func equalParts(n int) []changefeed.FeedRange {
	ranges := make([]changefeed.FeedRange, n)
	bound := changefeed.FullRange().Min
	for i := range n {
		ranges[i].Min = bound
		bound = fmt.Sprintf("%0*X", boundWidth, (i+1)<<hashBits/n)
		ranges[i].Max = bound
	}
	ranges[n-1].Max = changefeed.FullRange().Max
	return ranges
}

// hashes are the first hash of a range and the one behind its last.
func hashes(r changefeed.FeedRange) (from, to int32, err error) {
	from, err1 := hashBound(r.Min)
	to, err2 := hashBound(r.Max)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("postgres: feed range %s: %w", r, err)
	}
	return from, to, nil
}

func hashBound(bound string) (int32, error) {
	for len(bound) < boundWidth {
		bound += "0"
	}
	n, err := strconv.ParseUint(bound, 16, 64)
	if err != nil || len(bound) > boundWidth {
		return 0, fmt.Errorf("%q is no bound of this database's ranges", bound)
	}
	return int32(min(n, 1<<hashBits)), nil //nolint:gosec // 31 bits
}

// parts returns what the physical ranges cut r into.
func parts(r changefeed.FeedRange, physical []changefeed.FeedRange) []changefeed.FeedRange {
	var cut []changefeed.FeedRange
	for _, p := range physical {
		if !p.Overlaps(r) {
			continue
		}
		if !r.Has(p.Min) {
			p.Min = r.Min
		}
		if !r.Contains(p) {
			p.Max = r.Max
		}
		cut = append(cut, p)
	}
	return cut
}
