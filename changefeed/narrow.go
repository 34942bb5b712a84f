package changefeed

import (
	"math/rand/v2"
	"slices"
)

// narrowing takes a batch that fails as a whole apart until it knows which
// documents fail. It is pure: try hands items to the handler.
//
// Items are indices into the batch, grouped by key. Groups are tried in random
// halves; inside a half items stay in feed order, and once a document fails
// nothing behind it with the same key is tried.
type narrowing struct {
	groups [][]int
	// try delivers some items, in feed order. A PoisonError indexes into items.
	try func(items []int) error
	// stop reports whether to give up: the handler's context ended, or it looks
	// like an outage. It is asked before each try.
	stop func(failed, handled int) bool

	handled []int
	failed  []failedGroup
	end     bool
}

// failedGroup is a key whose document at position at of its group failed.
type failedGroup struct {
	group int
	at    int
	err   error
	named bool
}

func (n *narrowing) run() {
	order := rand.Perm(len(n.groups))
	switch len(order) {
	case 0:
	case 1:
		n.group(order[0], 0, len(n.groups[order[0]]), true)
	default:
		n.halves(order)
	}
}

// halves tries each half of groups that failed together.
func (n *narrowing) halves(groups []int) {
	mid := len(groups) / 2
	n.probe(groups[:mid])
	n.probe(groups[mid:])
}

func (n *narrowing) probe(groups []int) {
	if len(groups) == 1 {
		n.group(groups[0], 0, len(n.groups[groups[0]]), false)
		return
	}
	var items []int
	for _, g := range groups {
		items = append(items, n.groups[g]...)
	}
	slices.Sort(items)
	err := n.attempt(items)
	switch poison, named := asPoison(err); {
	case n.end:
	case err == nil:
		n.handled = append(n.handled, items...)
	case named && n.blame(groups, items, poison):
	default:
		n.halves(groups)
	}
}

// blame applies a PoisonError about items; it reports whether any document named
// was among them.
func (n *narrowing) blame(groups, items []int, poison *PoisonError) bool {
	causes := map[int]error{}
	for _, d := range poison.Documents {
		if d.Index >= 0 && d.Index < len(items) {
			causes[items[d.Index]] = d.Err
		}
	}
	if len(causes) == 0 {
		return false
	}
	for _, g := range groups {
		at := slices.IndexFunc(n.groups[g], func(item int) bool { _, bad := causes[item]; return bad })
		if at < 0 {
			n.handled = append(n.handled, n.groups[g]...)
			continue
		}
		n.handled = append(n.handled, n.groups[g][:at]...)
		n.failed = append(n.failed, failedGroup{group: g, at: at, err: causes[n.groups[g][at]], named: true})
	}
	return true
}

// group finds the first failing document of one key between from and to, by
// halving the prefix. It reports whether all of them were handled.
func (n *narrowing) group(g, from, to int, known bool) bool {
	var err error
	if !known || to-from == 1 {
		items := n.groups[g][from:to]
		err = n.attempt(items)
		if n.end {
			return false
		}
		if err == nil {
			n.handled = append(n.handled, items...)
			return true
		}
		if poison, named := asPoison(err); named {
			at := to
			cause := err
			for _, d := range poison.Documents {
				if d.Index >= 0 && d.Index < len(items) && from+d.Index < at {
					at, cause = from+d.Index, d.Err
				}
			}
			if at < to {
				n.handled = append(n.handled, n.groups[g][from:at]...)
				n.failed = append(n.failed, failedGroup{group: g, at: at, err: cause, named: true})
				return false
			}
		}
	}
	if to-from == 1 {
		n.failed = append(n.failed, failedGroup{group: g, at: from, err: err})
		return false
	}
	mid := from + (to-from)/2
	return n.group(g, from, mid, false) && n.group(g, mid, to, false)
}

func (n *narrowing) attempt(items []int) error {
	if n.end || n.stop(len(n.failed), len(n.handled)) {
		n.end = true
		return nil
	}
	return n.try(items)
}
