package servers

import (
	"testing"

	"feedbox/infrastructure/servicebus/subscriber"
	"feedbox/infrastructure/verify"
)

// Inbox is a consumer's inbox in memory behind a broker that drops no repeats. The zero value is
// usable.
type Inbox struct {
	Messages []verify.Message // what a handler would get, in order
	Repeats  int              // kept from it

	marks map[string]subscriber.Mark
}

// Take judges a message as the consumer kit's inbox does. One that comes before its predecessor
// fails the test.
func (b *Inbox) Take(t testing.TB, m verify.Message) {
	t.Helper()
	event := &subscriber.Event{ID: m.ID, Key: m.Session, Sequence: m.Sequence, AggregateVersion: m.Version}
	switch subscriber.Judge(b.marks[m.Session], event) {
	case subscriber.Fresh:
		if b.marks == nil {
			b.marks = make(map[string]subscriber.Mark)
		}
		b.marks[m.Session] = event.Mark()
		b.Messages = append(b.Messages, m)
	case subscriber.Gap:
		t.Errorf("event %s of %s came before its predecessor", m.ID, m.Session)
	default:
		b.Repeats++
	}
}
