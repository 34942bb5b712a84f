package changefeed

import "testing"

// A flow that is closed takes no page in, and gives its memory back.
func TestAClosedFlowTakesNoPage(t *testing.T) {
	opts, err := (&Options{}).resolve(HandlerFunc(nil))
	if err != nil {
		t.Fatal(err)
	}
	f := newFlow(&delivery{env: &env{opts: opts, clock: opts.Clock}, ctx: t.Context()})
	f.close()
	released := 0
	f.admit(&Page{Items: make([]Item, 1), Release: func() { released++ }})
	if released != 1 || f.window.busy() {
		t.Errorf("released %d times; in hand: %t", released, f.window.busy())
	}
}
