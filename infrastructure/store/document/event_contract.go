package document

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// EventContract defines which documents of the change feed are events, and which of their
// members the relay puts into a message. The zero value is the contract of this package's
// documents; event.schema.json is the same as a JSON Schema. A service that writes its own
// documents, in any language, configures the relay with its contract.
//
// The fields are names of members. Type, ID, Key and Body are members of the document;
// Subject and the fields after it are members of Body, or of the document if the name begins
// with a slash: "/eventType".
type EventContract struct {
	// Type is the member that distinguishes events from other documents. Default "type".
	Type string
	// Types are the values of Type that mark an event. Default "domainEvent". Documents with
	// another value, or without the member, are not sent.
	Types []string
	// ID is the member that becomes the message id. It is unique and never used again.
	// Default "id".
	ID string
	// Key is the member that becomes the session id: the container's partition key path
	// without the slash. Default "partitionKey".
	Key string
	// Body is the member whose object is the message, byte for byte. WholeDocument is the
	// document itself, with the members that the store adds. Default "data".
	Body string

	// Subject is the member that becomes the subject. Default "action". It may be the member
	// of Type ("/type") if each kind of event has its own document type.
	Subject string
	// Sequence is an optional member that counts the events of a key from 1 without a gap. In
	// the state of an aggregate, which is no event, it is the sequence of the key's last event:
	// the relay compares both and reports missing events. Default "sequence".
	Sequence string
	// Ordinal is an optional member that counts the events of a transaction from 1, in the order
	// in which they are to be sent. The feed returns the documents of one transaction in any
	// order. Any value that is not a positive whole number is no ordinal: an event is not refused
	// because its writer uses the name for something else. Default "ordinal".
	Ordinal string
	// Version is the version of the aggregate after the event. Default "aggregateVersion".
	Version string
	// CreatedAt is the time of the event, RFC 3339. Default "createdAt".
	CreatedAt string
	// Traceparent is the W3C trace context of the request. Default "traceparent".
	Traceparent string
}

// WholeDocument is the EventContract.Body that makes the document itself the message.
const WholeDocument = "."

// bodyMembers are the names of the members to read in one object; "" is none.
type bodyMembers struct{ subject, sequence, ordinal, version, createdAt, traceparent string }

// contract is an EventContract with its defaults, prepared for the decoder.
type contract struct {
	EventContract
	whole         bool        // Body is the document itself
	inside        bodyMembers // members of Body
	beside        bodyMembers // members of the document itself
	readsBeside   bool        // beside is not empty
	subjectIsType bool

	subjectPath, sequencePath, versionPath string // for error texts
}

var defaultContract = EventContract{}.compile()

func (c EventContract) compile() *contract {
	out := &contract{EventContract: *c.withDefaults()}
	out.whole = out.Body == WholeDocument
	for _, m := range []struct {
		name           string
		inside, beside *string
	}{
		{out.Subject, &out.inside.subject, &out.beside.subject},
		{out.Sequence, &out.inside.sequence, &out.beside.sequence},
		{out.Ordinal, &out.inside.ordinal, &out.beside.ordinal},
		{out.Version, &out.inside.version, &out.beside.version},
		{out.CreatedAt, &out.inside.createdAt, &out.beside.createdAt},
		{out.Traceparent, &out.inside.traceparent, &out.beside.traceparent},
	} {
		name, isBeside := strings.CutPrefix(m.name, "/")
		if isBeside || out.whole {
			*m.beside = name
		} else {
			*m.inside = name
		}
	}
	if out.subjectIsType = out.beside.subject == out.Type; out.subjectIsType {
		out.beside.subject = "" // read with the type
	}
	out.readsBeside = out.beside != bodyMembers{}
	out.subjectPath, out.sequencePath, out.versionPath = out.path(out.Subject), out.path(out.Sequence), out.path(out.Version)
	return out
}

// path returns the path of a member in the document, for error texts.
func (c *contract) path(member string) string {
	if name, isBeside := strings.CutPrefix(member, "/"); isBeside || c.whole {
		return name
	}
	return c.Body + "." + member
}

// names returns the names that are set.
func (m *bodyMembers) names() []string {
	return slices.DeleteFunc([]string{m.subject, m.sequence, m.ordinal, m.version, m.createdAt, m.traceparent}, func(name string) bool { return name == "" })
}

func (c EventContract) withDefaults() *EventContract {
	c.Type = cmp.Or(c.Type, "type")
	if len(c.Types) == 0 {
		c.Types = []string{TypeEvent}
	}
	c.ID = cmp.Or(c.ID, "id")
	c.Key = cmp.Or(c.Key, KeyMember)
	c.Body = cmp.Or(c.Body, "data")
	c.Subject = cmp.Or(c.Subject, "action")
	c.Sequence = cmp.Or(c.Sequence, "sequence")
	c.Ordinal = cmp.Or(c.Ordinal, "ordinal")
	c.Version = cmp.Or(c.Version, "aggregateVersion")
	c.CreatedAt = cmp.Or(c.CreatedAt, "createdAt")
	c.Traceparent = cmp.Or(c.Traceparent, "traceparent")
	return &c
}

// PartitionKeyPath is the path of the container's partition key, such as /partitionKey.
func (c EventContract) PartitionKeyPath() string { return "/" + c.withDefaults().Key }

// check reports contracts that no document can meet.
func (c *contract) check() error {
	var faults []error
	for _, member := range []struct {
		name, value string
		ofBody      bool
	}{
		{"Type", c.Type, false},
		{"ID", c.ID, false},
		{"Key", c.Key, false},
		{"Body", c.Body, false},
		{"Subject", c.Subject, true},
		{"Sequence", c.Sequence, true},
		{"Ordinal", c.Ordinal, true},
		{"Version", c.Version, true},
		{"CreatedAt", c.CreatedAt, true},
		{"Traceparent", c.Traceparent, true},
	} {
		name, hint := member.value, ""
		if member.ofBody {
			name, hint = strings.TrimPrefix(name, "/"), "; a slash before it means a member of the document itself"
		}
		if name == "" || strings.ContainsAny(name, `./"\`) && (member.name != "Body" || name != WholeDocument) {
			faults = append(faults, fmt.Errorf("event contract: %s is %q: give the name of one member, without dots, slashes and quotes%s", member.name, member.value, hint))
		}
	}
	for _, name := range slices.Concat(c.twice(append(c.beside.names(), c.Type, c.ID, c.Key, c.Body)), c.twice(c.inside.names())) {
		faults = append(faults, fmt.Errorf("event contract: two of its members have the name %q: only Subject and Type may share one", name))
	}
	if slices.Contains(c.Types, "") {
		faults = append(faults, errors.New("event contract: a type of Types is empty"))
	}
	return errors.Join(faults...)
}

func (*contract) twice(names []string) (found []string) {
	slices.Sort(names)
	for i, name := range names {
		if i > 0 && name == names[i-1] {
			found = append(found, name)
		}
	}
	return slices.Compact(found)
}
