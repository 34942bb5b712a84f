package cosmosemu

import (
	"math"
	"net/http"
	"slices"
	"strings"
)

// backward tells whether the request reads a feed of items from its end. The .NET SDK
// sends the name of the direction, or its number.
func (x *request) backward() bool {
	v := first(x.header, headerDirection)
	return x.route.op == OpListItems && (strings.EqualFold(v, "Reverse") || v == "2")
}

// checkDirection refuses to read anything else from its end.
func (x *request) checkDirection() *wireError {
	v := first(x.header, headerDirection)
	if v == "" || oneOf(v, "Forward", "1") || x.backward() {
		return nil
	}
	return refuse(http.StatusBadRequest, "x-ms-enumeration-direction %q is not supported by this emulator: it is Forward or Reverse, and only the feed of items is read in reverse", v)
}

// backwards serves all items as they are, the latest first. A page costs a scan of all
// that comes before it.
func (p *queryPage) backwards() error {
	before := uint64(math.MaxUint64)
	if p.from != nil {
		before = p.from.Document
	}
	type item struct {
		number uint64
		body   []byte
	}
	var last []item // of those before the page's start, at most one more than it takes
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
