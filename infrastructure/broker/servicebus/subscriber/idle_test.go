package subscriber

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"feedbox/infrastructure/consumer"
)

func TestOptionsHaveTheDocumentedDefaults(t *testing.T) {
	inbox := consumer.NewMemoryInbox(0)
	sessions, plain := SessionOptions{Inbox: inbox}, Options{}
	if err := errors.Join(sessions.complete(), plain.complete()); err != nil {
		t.Fatal(err)
	}
	want := SessionOptions{Inbox: inbox, Sessions: 8, Prefetch: 16, SessionIdle: time.Second, SessionMax: time.Minute, GapDeliveries: 3, Attempts: 10}
	if !reflect.DeepEqual(sessions, want) {
		t.Errorf("with sessions %+v, want %+v", sessions, want)
	}
	if want := (Options{Concurrency: 8, Prefetch: 16}); !reflect.DeepEqual(plain, want) {
		t.Errorf("without sessions %+v, want %+v", plain, want)
	}
}

// A session may receive an event before it notices its eviction. It must not be evicted for that reason
// when it is idle again.
func TestEventBeforeEvictionKeepsTheSession(t *testing.T) {
	p := &SessionProcessor{opts: SessionOptions{Sessions: 1}}
	evicted := func(h *heldSession) bool {
		select {
		case <-h.evicted:
			return true
		default:
			return false
		}
	}
	first, second, third := new(heldSession), new(heldSession), new(heldSession)
	place := p.addIdle(first)
	p.addIdle(second)
	if !evicted(first) || evicted(second) {
		t.Fatal("two idle sessions with a limit of one: want the first evicted")
	}
	p.removeIdle(place) // for an event
	p.addIdle(first)
	if evicted(first) || !evicted(second) {
		t.Fatal("want the session evicted that has been idle for longer")
	}
	p.addIdle(third)
	if !evicted(first) || evicted(third) {
		t.Error("want the first session evicted, which has been idle for longest")
	}
}
