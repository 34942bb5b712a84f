package servers

import (
	"testing"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/verify"
)

// Inbox is a consumer's inbox in memory behind a broker that drops no repeats. The zero value is
// usable.
type Inbox struct {
	Messages []verify.Message // what a handler would get, in order
	Repeats  int              // kept from it

	marks map[string]consumer.Mark
}

// Take judges a message as the consumer kit's inbox does. One that comes before its predecessor
// fails the test.
func (b *Inbox) Take(t testing.TB, m verify.Message) {
	t.Helper()
	event := &consumer.Event{ID: m.ID, Key: m.Session, Sequence: m.Sequence, AggregateVersion: m.Version}
	switch consumer.Judge(b.marks[m.Session], event) {
	case consumer.Fresh:
		if b.marks == nil {
			b.marks = make(map[string]consumer.Mark)
		}
		b.marks[m.Session] = event.Mark()
		b.Messages = append(b.Messages, m)
	case consumer.Gap:
		t.Errorf("event %s of %s came before its predecessor", m.ID, m.Session)
	default:
		b.Repeats++
	}
}
