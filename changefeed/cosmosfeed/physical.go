package cosmosfeed

import (
	"sync"

	"feedbox/changefeed"
)

// physicalRanges remembers the bounds of physical ranges by id. Splits and merges
// make ranges with ids of their own, and the bounds of an id never change: what is
// here does not go out of date.
type physicalRanges struct {
	mu   sync.RWMutex
	byID map[string]changefeed.FeedRange
}

func (p *physicalRanges) bounds(id string) (r changefeed.FeedRange, known bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	r, known = p.byID[id]
	return r, known
}

func (p *physicalRanges) learn(id string, r changefeed.FeedRange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[string]changefeed.FeedRange{}
	}
	p.byID[id] = r
}

// sighting is a physical range that replied, with the bounds a list made after
// that reply has for it.
//
// The SDK names the range it read by id and lists ranges without ids, from a cache
// that may change at any time. But its cache only moves on, and an id that is gone
// does not come back: if the same range replies before and after the list was
// made, it was in the list, as the one that holds what was asked for.
type sighting struct {
	id     string
	bounds changefeed.FeedRange
}

// sight finds the one listed range that overlaps what id replied for.
func sight(id string, asked changefeed.FeedRange, listed []changefeed.FeedRange) sighting {
	var s sighting
	for _, r := range listed {
		switch {
		case !r.Overlaps(asked):
		case s.id != "":
			return sighting{} // the list is of another time
		default:
			s = sighting{id: id, bounds: r}
		}
	}
	return s
}
