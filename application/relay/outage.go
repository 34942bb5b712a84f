package relay

import (
	"sync"
	"sync/atomic"
)

// outage is what all pages of a relay know of the broker together: that it does not
// accept, for how many rounds it has not, and how many pages wait for it. The pages take
// turns: each waits as many times longer as there are others, so that the broker is
// asked no more often for a relay that has many ranges and lanes. The first message
// that is accepted ends the outage for all of them.
type outage struct {
	on atomic.Bool // rounds > 0; read by every page

	mu     sync.Mutex // guards what follows
	rounds int        // that an outage stopped since the last message was accepted
	pages  int        // that wait
	over   chan struct{}
}

// enter notes a page that waits, until it leaves.
func (o *outage) enter() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pages++
}

func (o *outage) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pages--
}

// failed notes a round that was stopped. over is closed when the outage ends.
func (o *outage) failed() (over <-chan struct{}, rounds, pages int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rounds++
	o.on.Store(true)
	if o.over == nil {
		o.over = make(chan struct{})
	}
	return o.over, o.rounds, o.pages
}

// lasts reports whether a round was stopped since the last message was accepted.
func (o *outage) lasts() bool { return o.on.Load() }

// end notes that a message was accepted.
func (o *outage) end() {
	if !o.on.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rounds = 0
	o.on.Store(false)
	if o.over != nil {
		close(o.over)
		o.over = nil
	}
}
