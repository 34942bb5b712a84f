package cosmos

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// EventContract says which documents of the change feed are events, and where in them the
// relay finds what a message needs. The zero value is the contract of this package's own
// documents; event.schema.json says it as a JSON Schema. A service that writes its own
// documents, in whatever language, tells the relay its contract.
//
// Names are those of members. The partition key, ids and types are strings of the document
// itself, the rest is of Body.
type EventContract struct {
	// Type is the member that tells events from other documents. Default "type".
	Type string
	// Types are the values of Type that events have. Default "domainEvent". Documents with
	// another value, or without the member, are not sent.
	Types []string
	// ID is the member that becomes the message id. It is unique and never used again.
	// Default "id".
	ID string
	// Key is the member that becomes the session id: the container's partition key path
	// without the slash. Default "partitionKey".
	Key string
	// Body is the member whose object is the message, byte for byte. WholeDocument stands
	// for the document itself, with the members that the store adds. Default "data".
	Body string

	// Subject is the member of Body that becomes the subject. Default "action".
	Subject string
	// Sequence counts the events of a key from 1 without a gap, where the member is there.
	// In a document that is no event and has it, the state of an aggregate, it is that of
	// the key's last event: the relay compares both and reports what is missing. Default
	// "sequence".
	Sequence string
	// Version is that of what the event happened to. Default "aggregateVersion".
	Version string
	// CreatedAt is when it happened, RFC 3339. Default "createdAt".
	CreatedAt string
	// Traceparent is the W3C trace context of the request. Default "traceparent".
	Traceparent string
}

// WholeDocument is an EventContract.Body.
const WholeDocument = "."

// defaultContract is that of the zero EventContract.
var defaultContract = EventContract{}.withDefaults()

func (c EventContract) withDefaults() *EventContract {
	c.Type = cmp.Or(c.Type, "type")
	if len(c.Types) == 0 {
		c.Types = []string{typeDomainEvent}
	}
	c.ID = cmp.Or(c.ID, "id")
	c.Key = cmp.Or(c.Key, PartitionKeyPath[1:])
	c.Body = cmp.Or(c.Body, "data")
	c.Subject = cmp.Or(c.Subject, "action")
	c.Sequence = cmp.Or(c.Sequence, "sequence")
	c.Version = cmp.Or(c.Version, "aggregateVersion")
	c.CreatedAt = cmp.Or(c.CreatedAt, "createdAt")
	c.Traceparent = cmp.Or(c.Traceparent, "traceparent")
	return &c
}

// PartitionKeyPath is the path of the container's partition key, such as /partitionKey.
func (c EventContract) PartitionKeyPath() string { return "/" + c.withDefaults().Key }

// check reports what no documents can have.
func (c *EventContract) check() error {
	var faults []error
	for _, member := range []struct{ name, value string }{
		{"Type", c.Type},
		{"ID", c.ID},
		{"Key", c.Key},
		{"Body", c.Body},
		{"Subject", c.Subject},
		{"Sequence", c.Sequence},
		{"Version", c.Version},
		{"CreatedAt", c.CreatedAt},
		{"Traceparent", c.Traceparent},
	} {
		if strings.ContainsAny(member.value, `./"\`) && (member.name != "Body" || member.value != WholeDocument) {
			faults = append(faults, fmt.Errorf("event contract: %s is %q: give the name of one member, without dots, slashes and quotes", member.name, member.value))
		}
	}
	document := []string{c.Type, c.ID, c.Key, c.Body}
	inside := []string{c.Subject, c.Sequence, c.Version, c.CreatedAt, c.Traceparent}
	if c.hasTwice(document) || c.hasTwice(inside) {
		faults = append(faults, errors.New("event contract: two of its members have one name"))
	}
	if slices.Contains(c.Types, "") {
		faults = append(faults, errors.New("event contract: a type of Types is empty"))
	}
	return errors.Join(faults...)
}

func (*EventContract) hasTwice(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) < len(names)
}
