package document

import (
	"slices"
	"strings"
	"unicode/utf8"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/internal/jsontext"
)

// EventDecoder decodes events from the documents of the change feed, as an EventContract
// describes them:
//
//	{"id", "partitionKey", "type": "domainEvent", "data": {"action", "sequence",
//	 "ordinal", "aggregateVersion", "createdAt", "traceparent", ...}, "ttl", "_lsn", ...}
//
// It scans the document once and decodes only the members it needs: the body of the message
// is the bytes of data unchanged, and its strings share the document's memory (a string with
// an escape is copied). A document without a type, or of another type, is no event. If it has
// a sequence, it is the state of an aggregate: Decode returns its key and sequence. An event
// without id, partition key, data or action, or with a sequence or version that is not a whole
// number, gives a Refused error that names each fault.
//
// It expects one valid JSON value, because the decoder of the feed accepts nothing else. Any
// other input is refused or decoded partly; it never panics.
//
// The zero value has the contract of this package's documents. It is safe for concurrent use.
type EventDecoder struct {
	contract *contract // nil: the default
}

// NewEventDecoder returns a decoder of the events of a contract.
func NewEventDecoder(c EventContract) (EventDecoder, error) {
	contract := c.compile()
	return EventDecoder{contract}, contract.check()
}

// Decode implements relay.Decoder.
func (e EventDecoder) Decode(raw []byte) (relay.Message, bool, error) {
	d := eventDocument{contract: e.contractOrDefault()}
	if err := d.read(raw); err != nil {
		return d.message, false, relay.Refuse("invalid_document", "document %s: %w", d.name(), err)
	}
	if !d.isEvent {
		if d.isNote || d.message.Sequence < 1 {
			return relay.Message{}, false, nil
		}
		return relay.Message{Key: d.message.Key, Sequence: d.message.Sequence}, false, nil
	}
	if !utf8.Valid(raw) {
		d.fault("not valid UTF-8")
	}
	d.require(d.contract.ID, d.message.ID != "")
	d.require(d.contract.Key, d.message.Key != "")
	d.require(d.contract.Body, d.contract.whole || d.message.Body != nil)
	isKnown := d.message.Body != nil || d.contract.inside.subject == "" // otherwise the missing body is reported
	d.require(d.contract.subjectPath, d.message.Action != "" || !isKnown)
	if len(d.faults) > 0 {
		return d.message, false, relay.Refuse("invalid_event", "event %s: %s", d.name(), strings.Join(d.faults, ", "))
	}
	return d.message, true, nil
}

// Types returns the member that distinguishes events from other documents, and its values for
// events.
func (e EventDecoder) Types() (member string, values []string) {
	c := e.contractOrDefault()
	return c.Type, c.Types
}

// IDMember returns the member of a document that becomes the id of the event.
func (e EventDecoder) IDMember() string { return e.contractOrDefault().ID }

func (e EventDecoder) contractOrDefault() *contract {
	if e.contract == nil {
		return defaultContract
	}
	return e.contract
}

// eventDocument collects the members of one document.
type eventDocument struct {
	contract *contract
	message  relay.Message
	isEvent  bool
	isNote   bool     // a request, audit entry or tombstone
	faults   []string // reasons to refuse the event
}

func (d *eventDocument) fault(text string) { d.faults = append(d.faults, text) }

func (d *eventDocument) require(member string, present bool) {
	if !present {
		d.fault("no " + member)
	}
}

// name identifies the document in error texts.
func (d *eventDocument) name() string {
	if d.message.ID == "" {
		return "without id"
	}
	return strings.ToValidUTF8(d.message.ID, "?")
}

// read scans the members of the document. It stops early at the type of a note.
func (d *eventDocument) read(raw []byte) error {
	s, c := jsontext.NewScanner(raw), d.contract
	more, err := s.Enter()
	for more && err == nil {
		var member string
		if member, err = s.Member(); err != nil {
			break
		}
		switch member {
		case c.ID:
			d.message.ID, err = d.text(&s, c.ID)
		case c.Key:
			d.message.Key, err = d.text(&s, c.Key)
		case c.Type:
			var kind string
			if kind, _, err = s.Text(); err == nil {
				if d.isEvent = slices.Contains(c.Types, kind); c.subjectIsType {
					d.message.Action = kind
				}
				if d.isNote = !d.isEvent && isNote(kind); d.isNote {
					return nil
				}
			}
		case "_lsn":
			d.message.LSN, _, err = s.Integer()
		case c.Body:
			err = d.readBody(&s)
		default:
			if c.readsBeside {
				err = d.readMember(&s, member, &c.beside)
			} else {
				err = s.Skip()
			}
		}
		if err == nil {
			more, err = s.Next()
		}
	}
	if c.whole && err == nil {
		d.message.Body = raw
	}
	return err
}

// readBody scans the members of the body's object and keeps its bytes.
func (d *eventDocument) readBody(s *jsontext.Scanner) error {
	if s.Peek() != '{' {
		return s.Skip()
	}
	start := s.Pos()
	more, err := s.Enter()
	for more && err == nil {
		var member string
		if member, err = s.Member(); err != nil {
			break
		}
		if err = d.readMember(s, member, &d.contract.inside); err == nil {
			more, err = s.Next()
		}
	}
	d.message.Body = s.Since(start)
	return err
}

// readMember reads the value of a member if it is one of names.
func (d *eventDocument) readMember(s *jsontext.Scanner, member string, names *bodyMembers) (err error) {
	c := d.contract
	switch member {
	case "": // names has "" for a name that is not used
		err = s.Skip()
	case names.subject:
		d.message.Action, err = d.text(s, c.subjectPath)
	case names.sequence:
		d.message.Sequence, err = d.count(s, c.sequencePath)
	case names.ordinal:
		var ok bool
		if d.message.Ordinal, ok, err = s.Integer(); !ok || d.message.Ordinal < 1 {
			d.message.Ordinal = 0
		}
	case names.version:
		d.message.AggregateVersion, err = d.count(s, c.versionPath)
	case names.createdAt:
		d.message.CreatedAt, _, err = s.Text()
	case names.traceparent:
		d.message.Traceparent, _, err = s.Text()
	default:
		err = s.Skip()
	}
	return err
}

// text reads an optional member that must be a string.
func (d *eventDocument) text(s *jsontext.Scanner, name string) (string, error) {
	v, ok, err := s.Text()
	if !ok && err == nil {
		d.fault(name + " is not a string")
	}
	return v, err
}

// count reads an optional member that must be a positive whole number.
func (d *eventDocument) count(s *jsontext.Scanner, name string) (int64, error) {
	isNull := s.Peek() == 'n'
	n, ok, err := s.Integer()
	if err == nil && !isNull && (!ok || n < 1) {
		d.fault(name + " is not a positive whole number")
	}
	return n, err
}

// isNote reports whether kind is that of a request, audit entry or tombstone. They must not
// count as the state of an aggregate, because the sequence of a tombstone belongs to an event
// that may have expired long ago.
func isNote(kind string) bool {
	return kind == TypeRequest || kind == TypeAudit || kind == TypeTombstone
}
