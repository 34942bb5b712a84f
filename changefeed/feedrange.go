package changefeed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// FeedRange is a half-open interval of effective partition keys, written as upper-case
// hexadecimal: Min is included, Max is not. "" is the lowest key and "FF" lies above the
// highest, so FullRange is everything.
//
// The zero value is the empty interval "".."" and is not valid anywhere.
type FeedRange struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// FullRange is the whole key space.
func FullRange() FeedRange { return FeedRange{Min: "", Max: maxKey} }

// maxKey is the exclusive upper bound of the key space.
const maxKey = "FF"

// String returns min-max, the form used in lease ids and lease tokens.
func (r FeedRange) String() string { return r.Min + "-" + r.Max }

// Empty reports whether r contains no key.
func (r FeedRange) Empty() bool { return compareKeys(r.Min, r.Max) >= 0 }

// Has reports whether the effective partition key lies in r.
func (r FeedRange) Has(key string) bool {
	return compareKeys(r.Min, key) <= 0 && compareKeys(key, r.Max) < 0
}

// Contains reports whether every key of o is in r.
func (r FeedRange) Contains(o FeedRange) bool {
	return compareKeys(r.Min, o.Min) <= 0 && compareKeys(o.Max, r.Max) <= 0
}

// Overlaps reports whether some key is in both.
func (r FeedRange) Overlaps(o FeedRange) bool {
	return compareKeys(r.Min, o.Max) < 0 && compareKeys(o.Min, r.Max) < 0
}

// Intersect returns the keys in both. The result is Empty if there are none.
func (r FeedRange) Intersect(o FeedRange) FeedRange {
	if compareKeys(o.Min, r.Min) > 0 {
		r.Min = o.Min
	}
	if compareKeys(o.Max, r.Max) < 0 {
		r.Max = o.Max
	}
	return r
}

// Equal compares bounds, not spelling: "1F" and "1F00" are the same bound.
func (r FeedRange) Equal(o FeedRange) bool {
	return compareKeys(r.Min, o.Min) == 0 && compareKeys(r.Max, o.Max) == 0
}

func (r FeedRange) validate() error {
	for _, bound := range []string{r.Min, r.Max} {
		if strings.Trim(bound, "0123456789ABCDEF") != "" {
			return fmt.Errorf("feed range %s: bound %q is not upper-case hexadecimal", r, bound)
		}
	}
	if r.Empty() {
		return fmt.Errorf("feed range %s: the minimum must lie below the maximum", r)
	}
	if compareKeys(r.Max, maxKey) > 0 {
		return fmt.Errorf("feed range %s: the maximum must not lie above %s", r, maxKey)
	}
	return nil
}

// compareKeys orders effective partition keys. Bounds of one container may have different
// lengths, because a prefix of a hierarchical key is shorter than a whole one. The shorter
// one is read as if zeros followed.
func compareKeys(a, b string) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	switch {
	case strings.Trim(a[n:], "0") != "":
		return 1
	case strings.Trim(b[n:], "0") != "":
		return -1
	}
	return 0
}

func byMin(a, b FeedRange) int { return compareKeys(a.Min, b.Min) }

// subtract returns the parts of r outside the holes, in order.
func (r FeedRange) subtract(holes []FeedRange) []FeedRange {
	holes = slices.Clone(holes)
	slices.SortFunc(holes, byMin)
	var rest []FeedRange
	from := r.Min
	for _, hole := range holes {
		if !hole.Overlaps(r) {
			continue
		}
		if compareKeys(from, hole.Min) < 0 {
			rest = append(rest, FeedRange{Min: from, Max: hole.Min})
		}
		if compareKeys(from, hole.Max) < 0 {
			from = hole.Max
		}
	}
	if compareKeys(from, r.Max) < 0 {
		rest = append(rest, FeedRange{Min: from, Max: r.Max})
	}
	return rest
}
