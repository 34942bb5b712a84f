package changefeed

import (
	"cmp"
	"slices"
)

// tiling is the result of a check that the leases tile the scope. It uses their bounds
// alone, because the list of physical ranges may be out of date.
type tiling struct {
	covered []FeedRange // by live leases and by splits that are not completed
	// gaps are parts of the scope without a lease.
	gaps []FeedRange
	// replaced maps live leases that contain narrower live ones to the parts those do not
	// cover. Such a lease is a parent that reappeared or was never deleted.
	replaced map[string][]FeedRange
	// overlaps are pairs of live leases of which neither contains the other. No step of the
	// protocol creates them.
	overlaps [][2]string
}

func inspectTiling(scope []FeedRange, leases []Lease) tiling {
	var live []*Lease
	t := tiling{replaced: map[string][]FeedRange{}}
	for i := range leases {
		l := &leases[i]
		if l.State == LeaseLive {
			live = append(live, l)
		}
		if l.State == LeaseLive || l.State == LeaseSplit {
			t.covered = append(t.covered, l.Range)
		}
	}
	for _, s := range scope {
		t.gaps = append(t.gaps, s.subtract(t.covered)...)
	}
	slices.SortFunc(live, func(a, b *Lease) int {
		return cmp.Or(
			compareKeys(a.Range.Min, b.Range.Min), compareKeys(b.Range.Max, a.Range.Max), // the wider one first
			cmp.Compare(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
	})
	for i, wide := range live {
		var inner []FeedRange
		for _, narrow := range live[i+1:] {
			if !wide.Range.Overlaps(narrow.Range) {
				break
			}
			if wide.Range.Contains(narrow.Range) {
				inner = append(inner, narrow.Range)
			} else {
				t.overlaps = append(t.overlaps, [2]string{wide.ID, narrow.ID})
			}
		}
		if len(inner) > 0 {
			t.replaced[wide.ID] = wide.Range.subtract(inner)
		}
	}
	return t
}

// cut cuts r at the bounds of ranges. whole reports whether they cover it.
func cut(r FeedRange, ranges []FeedRange) (parts []FeedRange, whole bool) {
	for _, p := range ranges {
		if part := r.Intersect(p); !part.Empty() {
			parts = append(parts, part)
		}
	}
	slices.SortFunc(parts, byMin)
	return parts, tiles(r, parts)
}

// tiles reports whether the parts, in order, cover r without gap or overlap.
func tiles(r FeedRange, parts []FeedRange) bool {
	at := r.Min
	for _, p := range parts {
		if compareKeys(p.Min, at) != 0 || p.Empty() {
			return false
		}
		at = p.Max
	}
	return compareKeys(at, r.Max) == 0
}
