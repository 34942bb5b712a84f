package relay

import (
	"fmt"
	"strings"

	"feedbox/infrastructure/lab/verify"
)

// Shape describes a backlog and how it is sent.
type Shape struct {
	Contacts   int // each a partition key
	Commits    int // transactions of each contact, in turns with the others
	Events     int // per transaction
	Size       int // bytes of an event's data
	Partitions int // physical partitions of the container
	Relays     int // relays that share the work

	EventsOnly bool // the contacts' own documents are omitted

	Pack bool // several keys in one batch
	Disk bool // emulators on disk, with fsync before every acknowledgement
}

// backlog returns the shape of the goals.
func backlog() Shape {
	return Shape{Contacts: 20_000, Commits: 1, Events: 10, Size: 512, Partitions: 4, Relays: 1}
}

// total returns the number of events.
func (s Shape) total() int { return s.Contacts * s.Commits * s.Events }

// perContact returns the number of events per contact.
func (s Shape) perContact() int { return s.Commits * s.Events }

func key(contact int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", contact) }

func eventID(contact, n int) string { return fmt.Sprintf("%08x-0000-4000-9000-%012d", n, contact) }

const (
	action      = "ContactNameUpdatedEvent"
	traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

// event returns the document of a contact's n-th event as the service stores it.
func (s Shape) event(contact, n int) []byte {
	data := fmt.Sprintf(`{"name":{"firstName":"Jane","lastName":"Doe"},"contactId":"%s","action":"%s","id":"%s","createdAt":"2026-11-21T12:00:00Z","aggregateVersion":%d,"sequence":%d,"traceparent":"%s","fill":""}`,
		key(contact), action, eventID(contact, n), (n-1)/s.Events+1, n, traceparent)
	if fill := s.Size - len(data); fill > 0 {
		data = strings.Replace(data, `"fill":""`, `"fill":"`+strings.Repeat("x", fill)+`"`, 1)
	}
	return fmt.Appendf(nil, `{"id":"%s","partitionKey":"%s","type":"domainEvent","data":%s,"ttl":864000}`, eventID(contact, n), key(contact), data)
}

// contact returns the document of a contact after the given number of commits.
func (s Shape) contact(contact, commits int) []byte {
	return fmt.Appendf(nil, `{"id":"%[1]s","partitionKey":"%[1]s","type":"contact","data":{"name":{"firstName":"Jane","lastName":"Doe"},"description":"A contact of the benchmark.","email":"jane@contoso.example","company":{"companyName":"Contoso","street":"Long Street","houseNumber":"1","postalCode":"12345","city":"Redmond","country":"USA"},"createdAt":"2026-11-21T12:00:00Z","deleted":false,"id":"%[1]s","version":%[2]d,"sequence":%[3]d},"ttl":-1}`,
		key(contact), commits, commits*s.Events)
}

// stored returns the content of the store for the verifier.
func (s Shape) stored() (contacts []verify.Aggregate, events []verify.Event) {
	for c := range s.Contacts {
		contacts = append(contacts, verify.Aggregate{ID: key(c), Version: int64(s.Commits), Sequence: int64(s.perContact())})
		for n := 1; n <= s.perContact(); n++ {
			events = append(events, verify.Event{ID: eventID(c, n), Key: key(c), Action: action, Version: int64((n-1)/s.Events + 1), Sequence: int64(n)})
		}
	}
	return contacts, events
}
