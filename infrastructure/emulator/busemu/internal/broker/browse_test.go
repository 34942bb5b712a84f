package broker

import "testing"

func (r *rig) browse(path string) *client {
	r.t.Helper()
	c := &client{r: r}
	var err error
	if c.Receiver, err = r.OpenReceiver(path, c.options(Browse)); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// TestBrowse: a browser sees ready and locked messages in order, as its credit allows, and
// removes none.
func TestBrowse(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{})
		r.send("q", msg("a"), msg("b"), msg("c"))
		b := r.browse("q")
		b.SetCredit(0, 2)
		b.want("a", "b")
		c := r.receive("q", 10)
		locked := c.taken()
		if len(locked) != 3 {
			t.Fatalf("%d messages are left for a consumer, want 3", len(locked))
		}
		if m := locked[2]; m.LockToken == (LockToken{}) {
			t.Error("the consumer's message is not locked")
		}
		b.SetCredit(2, 10)
		b.want("c") // it is locked: still there
		r.send("q", msg("d"))
		b.want("d")
		c.want("d")
		b.Close()
		r.send("q", msg("e"))
		b.want()
	})
}

// TestBrowseSessions: a browser needs no session.
func TestBrowseSessions(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("q", Queue{RequiresSession: true})
		one, two := msg("a"), msg("b")
		one.SessionID, one.HasSession, two.SessionID, two.HasSession = "1", true, "2", true
		r.send("q", one, two)
		b := r.browse("q")
		b.SetCredit(0, 10)
		b.want("a", "b")
	})
}
