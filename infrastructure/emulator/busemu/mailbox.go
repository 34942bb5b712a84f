package busemu

import (
	"sync"
)

// mailbox receives events for a connection's loop from other goroutines.
type mailbox struct {
	mu    sync.Mutex // guards inbox and every link's arrivals; a leaf lock
	inbox []event
	spare []event       // owned by the loop: the other half of the inbox
	wake  chan struct{} // capacity 1
}

func newMailbox() mailbox { return mailbox{wake: make(chan struct{}, 1)} }

// event comes from outside the loop. Exactly one of fn and link is set; link events are
// frequent and need no closure.
type event struct {
	fn   func()
	link eventHandler
	id   uint32 // delivery id
	n    int    // bytes
	err  error
}

type eventHandler interface{ handleEvent(e event) }

// post adds an event. It is safe for concurrent use and does not block.
func (b *mailbox) post(e event) {
	b.mu.Lock()
	b.inbox = append(b.inbox, e)
	b.mu.Unlock()
	b.signal()
}

func (b *mailbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
