package rabbitmq

import (
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer/cloudevents"
)

const (
	// maxPackedEvents and maxPackedBytes bound a packed message. Larger ones would save little: with ten events
	// the cost of the message is a small part of the cost of its events. A consumer that crashes gets all
	// events of its messages again. 64 KiB is half of the default frame_max of the broker.
	maxPackedEvents = 100
	maxPackedBytes  = 64 << 10
	// packedID is the beginning of the id of a packed message. The id of an event would let the inbox of an
	// earlier version drop the whole message as a repetition of that event.
	packedID = "batch."
)

// headerSlot is the header of a packed message with the slot of its keys. It has no key, and operators can
// send it again from a dead-letter queue.
const headerSlot = "slot"

// parcel is a message of the broker: the next events of a group, or of several groups of one slot.
type parcel struct {
	id     string // message id
	slot   int
	shares []share
	events int
}

// share is the part of a group in a parcel.
type share struct{ group, events int }

// packer chooses and encodes the next message of a sender.
type packer struct {
	slots  []int            // by group; nil: nothing is packed
	limit  int              // of the body of a packed message
	events []*relay.Message // of the next message
	shares []share          // of all messages of the call
	body   []byte           // a JSON array without its end, once a second event was tried
}

// next returns the next message of ready groups, and the groups that remain ready. It sets the error of
// groups whose next event is refused. The message has no events if none can be sent.
func (s *sender) next(ready []int) (p parcel, left []int) {
	k := &s.packer
	k.events, k.body = k.events[:0], k.body[:0]
	from := len(k.shares)
	for full := false; len(ready) > 0 && !full; {
		g, n := ready[0], 0
		for pending := s.groups[g].Messages[s.results[g].Sent:]; n < len(pending); n++ {
			m := &pending[n]
			if err := s.publisher.check(m); err != nil {
				if n == 0 {
					s.results[g].Err = err
				}
				break // the events before it are sent first
			}
			if p.events == 0 {
				p.id, p.slot = m.ID, k.slot(g, m.Key)
			} else if full = !s.add(p.slot, g, m); full {
				break
			}
			k.events = append(k.events, m)
			p.events++
		}
		if n > 0 {
			k.shares = append(k.shares, share{g, n})
		} else if full {
			break // it is for the next message
		}
		ready = ready[1:]
	}
	if p.events > 1 {
		p.id = packedID + p.id
	}
	p.shares = k.shares[from:]
	return p, ready
}

func (k *packer) slot(g int, key string) int {
	if k.slots == nil {
		return Slot(key)
	}
	return k.slots[g]
}

// add encodes another event of a message, and the first one before the second. It reports whether the event
// fits.
func (s *sender) add(slot, g int, m *relay.Message) bool {
	k := &s.packer
	if k.slots == nil || k.slots[g] != slot || len(k.events) == maxPackedEvents || s.groups[g].Alone {
		return false
	}
	first, source := k.events[0], s.publisher.opts.Source
	if !packable(m) || len(k.body) == 0 && !packable(first) {
		return false
	}
	if len(k.body) == 0 {
		k.body = appendEvent(append(k.body, '['), first, source)
	}
	before := len(k.body)
	k.body = appendEvent(append(k.body, ','), m, source)
	if len(k.body) < k.limit {
		return true
	}
	k.body = k.body[:before]
	return false
}

// packable reports whether m is the same after it was packed. Others are sent alone: JSON has no invalid UTF-8,
// and the body of a batch no white space around data.
func packable(m *relay.Message) bool {
	if m.ID == "" || len(m.ID) > textLimit-len(packedID) || m.Action == "" || len(m.Body) == 0 || m.Body[0] <= ' ' || m.Body[len(m.Body)-1] <= ' ' {
		return false
	}
	if m.CreatedAt != "" {
		if _, err := time.Parse(time.RFC3339, m.CreatedAt); err != nil {
			return false
		}
	}
	return utf8.ValidString(m.ID) && utf8.ValidString(m.Key) && utf8.ValidString(m.Action) && utf8.ValidString(m.Traceparent)
}

func appendEvent(to []byte, m *relay.Message, source string) []byte {
	e := cloudevents.Event{
		ID: m.ID, Source: source, Type: m.Action, Time: m.CreatedAt, Key: m.Key, Sequence: m.Sequence,
		AggregateVersion: m.AggregateVersion, Traceparent: m.Traceparent, Data: m.Body,
	}
	return e.AppendJSON(to)
}

// encode encodes the message that next has returned. Its type is the action of the first event, so that most
// handlers of consumers that cannot unpack it refuse its body.
func (s *sender) encode(p *parcel) amqp.Publishing {
	k := &s.packer
	if p.events == 1 {
		return publishing(k.events[0], s.publisher.opts.Source)
	}
	k.body = append(k.body, ']')
	return amqp.Publishing{
		MessageId: p.id, Type: k.events[0].Action, AppId: s.publisher.opts.Source, ContentType: cloudevents.TypeBatch,
		DeliveryMode: amqp.Persistent, Headers: amqp.Table{headerSlot: int32(p.slot)}, Body: k.body, //nolint:gosec // below 256
	}
}
