package cosmos

import (
	"strings"
	"unicode/utf8"

	"feedbox/application/relay"
	"feedbox/infrastructure/cosmos/internal/jsontext"
)

// typeDomainEvent is the type of the documents that hold events.
const typeDomainEvent = "domainEvent"

const typeContact = "contact"

// EventDecoder reads events out of the documents of the change feed:
//
//	{"id", "partitionKey", "type": "domainEvent", "data": {"action", "sequence",
//	 "aggregateVersion", "createdAt", "traceparent", ...}, "ttl", "_lsn", ...}
//
// It goes over the document once and decodes nothing that is only passed on: the body
// of the message is the bytes of data as they stand, and its strings share the
// document's memory (a string with an escape is copied). A document without a type, or
// of another one, is no event; of a contact it gives key and last sequence. An event without id, partition key, data or action, or
// with a sequence or version that is not a whole number, gives a Refused error that
// names each fault.
//
// It expects one valid JSON value, which is what the feed's own decoder lets through.
// Any other input is refused or read as far as it makes sense; it never panics.
//
// The zero value is ready and safe for concurrent use.
type EventDecoder struct{}

var _ relay.Decoder = EventDecoder{}

// Decode implements relay.Decoder.
func (EventDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	var d eventDocument
	if err := d.read(raw); err != nil {
		return d.message, false, relay.Refuse("invalid_document", "document %s: %w", d.name(), err)
	}
	switch d.kind {
	case typeDomainEvent:
	case typeContact:
		return relay.Message{Key: d.message.Key, Sequence: d.message.Sequence}, false, nil
	default:
		return relay.Message{}, false, nil
	}
	if !utf8.Valid(raw) {
		d.fault("not valid UTF-8")
	}
	d.require("id", d.message.ID != "")
	d.require("partitionKey", d.message.Key != "")
	d.require("data", d.message.Body != nil)
	d.require("data.action", d.message.Action != "" || d.message.Body == nil)
	if len(d.faults) > 0 {
		return d.message, false, relay.Refuse("invalid_event", "event %s: %s", d.name(), strings.Join(d.faults, ", "))
	}
	return d.message, true, nil
}

// eventDocument is what Decode gathers from one document.
type eventDocument struct {
	message relay.Message
	kind    string   // the type member
	faults  []string // what makes the event unusable
}

func (d *eventDocument) fault(text string) { d.faults = append(d.faults, text) }

func (d *eventDocument) require(member string, present bool) {
	if !present {
		d.fault("no " + member)
	}
}

// name tells the document in messages for people.
func (d *eventDocument) name() string {
	if d.message.ID == "" {
		return "without id"
	}
	return strings.ToValidUTF8(d.message.ID, "?")
}

// read goes over the members of the document. It stops early at a type that tells it
// nothing.
func (d *eventDocument) read(raw []byte) error {
	s := jsontext.NewScanner(raw)
	more, err := s.Enter()
	for more && err == nil {
		var member string
		if member, err = s.Member(); err != nil {
			break
		}
		switch member {
		case "id":
			d.message.ID, err = d.text(&s, member)
		case "partitionKey":
			d.message.Key, err = d.text(&s, member)
		case "type":
			if d.kind, _, err = s.Text(); err == nil && d.kind != typeDomainEvent && d.kind != typeContact {
				return nil
			}
		case "_lsn":
			d.message.LSN, _, err = s.Integer()
		case "data":
			err = d.readData(&s)
		default:
			err = s.Skip()
		}
		if err == nil {
			more, err = s.Next()
		}
	}
	return err
}

// readData goes over the members of the data object and keeps its bytes as the body.
func (d *eventDocument) readData(s *jsontext.Scanner) error {
	start := s.Pos()
	if s.Peek() != '{' {
		return s.Skip()
	}
	more, err := s.Enter()
	for more && err == nil {
		var member string
		if member, err = s.Member(); err != nil {
			break
		}
		switch member {
		case "action":
			d.message.Action, err = d.text(s, "data.action")
		case "sequence":
			d.message.Sequence, err = d.count(s, "data.sequence")
		case "aggregateVersion":
			d.message.AggregateVersion, err = d.count(s, "data.aggregateVersion")
		case "createdAt":
			d.message.CreatedAt, _, err = s.Text()
		case "traceparent":
			d.message.Traceparent, _, err = s.Text()
		default:
			err = s.Skip()
		}
		if err == nil {
			more, err = s.Next()
		}
	}
	d.message.Body = s.Since(start)
	return err
}

// text reads a member that has to be a string if it is there.
func (d *eventDocument) text(s *jsontext.Scanner, member string) (string, error) {
	v, ok, err := s.Text()
	if !ok && err == nil {
		d.fault(member + " is not a string")
	}
	return v, err
}

// count reads a member that has to be a positive whole number if it is there.
func (d *eventDocument) count(s *jsontext.Scanner, member string) (int64, error) {
	isNull := s.Peek() == 'n'
	n, ok, err := s.Integer()
	if err == nil && !isNull && (!ok || n < 1) {
		d.fault(member + " is not a positive whole number")
	}
	return n, err
}
