package cosmosemu

import (
	"math"
	"slices"
)

// backwards serves all items unchanged, the latest first. Every page scans all items before
// its end, because Container.Scan reads forward.
func (p *queryPage) backwards() error {
	before := uint64(math.MaxUint64)
	if p.from != nil {
		before = p.from.Document
	}
	type item struct {
		number uint64
		body   []byte
	}
	var last []item // the latest items before the start of the page, at most one more than fit
	err := p.scan(0, func(number uint64, body []byte) bool {
		if number >= before {
			return false
		}
		var free item
		if len(last) > p.limit {
			free, last = last[0], slices.Delete(last, 0, 1)
		}
		last = append(last, item{number, append(free.body[:0], body...)})
		return true
	})
	for _, it := range slices.Backward(last) {
		if p.full() {
			p.next = &continuation{Document: before, Backward: true}
			break
		}
		p.emitRow(it.body)
		before = it.number
	}
	return err
}
