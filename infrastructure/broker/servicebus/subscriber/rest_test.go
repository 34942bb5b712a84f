package subscriber

import "testing"

// A session that was to be given back, and got an event first, rests as any other afterwards.
func TestAnEventComesBeforeASessionIsGivenBack(t *testing.T) {
	p := &SessionProcessor{opts: SessionOptions{Sessions: 1}}
	givenBack := func(h *hold) bool {
		select {
		case <-h.tooMany:
			return true
		default:
			return false
		}
	}
	woken, second, third := new(hold), new(hold), new(hold)
	place := p.rest(woken)
	p.rest(second)
	if !givenBack(woken) || givenBack(second) {
		t.Fatal("two sessions rest where one may: the first is to be given back")
	}
	p.wake(place) // for an event
	p.rest(woken)
	if givenBack(woken) || !givenBack(second) {
		t.Fatal("a session that had an event is to be given back, and not the one that rests for longer")
	}
	p.rest(third)
	if !givenBack(woken) || givenBack(third) {
		t.Error("the session that had an event is not to be given back, though it rests for longest")
	}
}
