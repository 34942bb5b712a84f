package limit

import "sync"

// Places bounds work in progress. Refusing the rest early keeps the admitted work fast. A caller
// may hold as many places as are free: one caller alone half of them, two a third each. So there
// is always a place for a caller that has none, without a part reserved for it. It is safe for
// concurrent use.
type Places struct {
	limit int // unlimited if not positive

	mu   sync.Mutex // guards the fields below
	held int
	by   map[string]int // by caller
}

// NewPlaces returns limit places; unlimited if it is not positive.
func NewPlaces(limit int) *Places { return &Places{limit: limit, by: map[string]int{}} }

// Enter takes a place for a caller. The empty caller has no share of its own, and may take all.
// If it is refused, free reports whether others would get a place.
func (p *Places) Enter(caller string) (entered, free bool) {
	if p.limit <= 0 {
		return true, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.limit - p.held
	if left <= 0 || caller != "" && p.by[caller] >= left {
		return false, left > 0
	}
	p.held++
	if caller != "" {
		p.by[caller]++
	}
	return true, true
}

// Leave returns a place that Enter has taken.
func (p *Places) Leave(caller string) {
	if p.limit <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held--
	if caller == "" {
		return
	}
	if p.by[caller]--; p.by[caller] == 0 {
		delete(p.by, caller)
	}
}
