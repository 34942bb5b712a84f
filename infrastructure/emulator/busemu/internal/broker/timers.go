package broker

import (
	"container/heap"
	"sync"
	"time"
)

// alarm is the next time at which its owner has something to do. fire is called without the
// timers' lock, from the timer goroutine or from Advance, and possibly early.
type alarm struct {
	fire  func(now int64)
	at    int64 // unix nanoseconds, 0 = off; guarded by timers.mu
	index int   // in the heap plus 1, 0 = not in it; guarded by timers.mu
}

// timers is a heap of alarms with the goroutine that serves it. A holder sets its alarm only to an
// earlier time, so that a message rarely touches the heap.
type timers struct {
	now  func() int64
	wake chan struct{} // capacity 1
	stop chan struct{} // closed by close
	done chan struct{} // closed by run

	mu    sync.Mutex
	queue alarmHeap
}

func newTimers(now func() int64) *timers {
	return &timers{now: now, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// set changes a's time; 0 switches it off.
func (t *timers) set(a *alarm, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.at = at
	switch {
	case at == 0 && a.index > 0:
		heap.Remove(&t.queue, a.index-1)
	case at != 0 && a.index > 0:
		heap.Fix(&t.queue, a.index-1)
	case at != 0:
		heap.Push(&t.queue, a)
	}
	if a.index == 1 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// fireDue fires every alarm that is due.
func (t *timers) fireDue() {
	for {
		now := t.now()
		t.mu.Lock()
		if len(t.queue) == 0 || t.queue[0].at > now {
			t.mu.Unlock()
			return
		}
		a := heap.Pop(&t.queue).(*alarm)
		a.at = 0
		t.mu.Unlock()
		a.fire(now)
	}
}

// run serves the heap until close.
func (t *timers) run() {
	defer close(t.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		t.mu.Lock()
		wait := time.Hour
		if len(t.queue) > 0 {
			wait = max(0, min(wait, time.Duration(t.queue[0].at-t.now())))
		}
		t.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-t.stop:
			return
		case <-t.wake:
		case <-timer.C:
			t.fireDue()
		}
	}
}

func (t *timers) close() {
	close(t.stop)
	<-t.done
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int { return len(h) }

func (h alarmHeap) Less(i, j int) bool { return h[i].at < h[j].at }

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	*h = append(*h, a)
	a.index = len(*h)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.index = 0
	return a
}
