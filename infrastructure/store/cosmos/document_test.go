package cosmos_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/txtar"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/contact"
	"feedbox/domain/event"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/document/contacts"
	"feedbox/tests/fuzzseed"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files instead of comparing")

const goldenTraceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// encodeContact returns the document of a contact in that state.
func encodeContact(state contact.State, deletedTTL time.Duration) (cosmos.DataObject, error) {
	c, err := contact.Rehydrate(state)
	if err != nil {
		return cosmos.DataObject{}, err
	}
	return cosmos.DocumentOf(contacts.Kind(), c, aggregate.Commit{Version: state.Version, Sequence: state.Sequence}, deletedTTL)
}

// decodeContact reads a contact from its document.
func decodeContact(o cosmos.DataObject) (s contact.State, isContact bool, err error) {
	c, err := cosmos.AggregateOf(contacts.Kind(), o)
	if fault.Is(err, fault.NotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, true, err
	}
	return c.State(), true, nil
}

func encodeEvent(e event.Event, ttl time.Duration, traceparent string) (cosmos.DataObject, error) {
	return cosmos.EventDocumentOf(contacts.Kind(), e, ttl, traceparent)
}

func parseTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func goldenState(t *testing.T) contact.State {
	return contact.State{
		ID:          uuid.MustParse("b5e2e7aa-4982-4735-9422-c39a7c4af5c2"),
		FirstName:   "John",
		LastName:    "Doe",
		Description: "This is a contact",
		Email:       "johndoe@contoso.com",
		Company: contact.CompanyFields{
			CompanyName: "Contoso", Street: "Street", HouseNumber: "1a",
			PostalCode: "092821", City: "Palo Alto", Country: "US",
		},
		CreatedAt: parseTime(t, "2021-09-22T11:07:37.3022907+02:00"),
		Version:   1,
		Sequence:  1,
	}
}

// goldenDocuments reads the members of testdata/documents.txtar.
func goldenDocuments(tb testing.TB) *txtar.Archive {
	tb.Helper()
	archive, err := txtar.ParseFile(goldenPath)
	if err != nil || len(archive.Files) == 0 {
		tb.Fatalf("%s: no documents: %v", goldenPath, err)
	}
	return archive
}

const goldenPath = "testdata/documents.txtar"

// rewriting serializes the tests that rewrite the archive.
var rewriting sync.Mutex

// rewriteGolden replaces one member of the archive, or adds it.
func rewriteGolden(t *testing.T, name string, data []byte) {
	t.Helper()
	rewriting.Lock()
	defer rewriting.Unlock()
	archive := goldenDocuments(t)
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		i = len(archive.Files)
		archive.Files = append(archive.Files, txtar.File{Name: name})
	}
	archive.Files[i].Data = data
	// Renamed, because parallel tests read the archive meanwhile.
	if err := os.WriteFile(goldenPath+".new", txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(goldenPath+".new", goldenPath); err != nil {
		t.Fatal(err)
	}
}

// goldenDocument reads one member.
func goldenDocument(tb testing.TB, name string) []byte {
	tb.Helper()
	for _, f := range goldenDocuments(tb).Files {
		if f.Name == name {
			return f.Data
		}
	}
	tb.Fatalf("%s has no %s: run with -rewrite if it is new", goldenPath, name)
	return nil
}

// compareGolden compares a stored document with a member of testdata/documents.txtar, which is
// indented for readers. The stored document is the same without white space.
func compareGolden(t *testing.T, name string, o cosmos.DataObject) {
	t.Helper()
	raw, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		pretty.WriteByte('\n')
		rewriteGolden(t, name, pretty.Bytes())
	}
	var want bytes.Buffer
	if err := json.Compact(&want, goldenDocument(t, name)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(raw)); diff != "" {
		t.Errorf("%s (-want +got), run with -rewrite if this is meant:\n%s", name, diff)
	}
}

func TestStoredContacts(t *testing.T) {
	t.Parallel()
	deleted := goldenState(t)
	deleted.Deleted = true
	deleted.DeletedAt = parseTime(t, "2021-09-23T08:00:00.000000001Z")
	deleted.ModifiedAt = deleted.DeletedAt
	deleted.Version, deleted.Sequence = 3, 5
	minimal := contact.State{
		ID: deleted.ID, FirstName: "<J&hn>", LastName: "Ωmega", Company: contact.CompanyFields{CompanyName: "Contoso"},
		CreatedAt: deleted.CreatedAt.UTC(), Version: 1, Sequence: 1,
	}
	for name, state := range map[string]contact.State{
		"contact.json": goldenState(t), "contact_deleted.json": deleted, "contact_minimal.json": minimal,
	} {
		o, err := encodeContact(state, 720*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, name, o)
		raw, _ := o.Encode()
		again, err := cosmos.DecodeObject(raw)
		if err != nil {
			t.Fatal(err)
		}
		read, isContact, err := decodeContact(again)
		if err != nil || !isContact {
			t.Fatalf("%s: is a contact: %t, %v", name, isContact, err)
		}
		if diff := cmp.Diff(state, read); diff != "" {
			t.Errorf("%s read again (-want +got):\n%s", name, diff)
		}
	}
}

func TestStoredEvents(t *testing.T) {
	t.Parallel()
	state := goldenState(t)
	meta := event.Meta{
		ID: uuid.MustParse("d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0"), AggregateID: state.ID,
		CreatedAt: parseTime(t, "2021-09-22T11:37:37.3022907+02:00"), AggregateVersion: 2, Sequence: 2,
	}
	jane, _ := contact.NewName("Jane", "Doe")
	text, address := "Another text", "jane@contoso.com"
	description, _ := contact.NewDescription(&text)
	email, _ := contact.NewEmail(&address)
	company, _ := contact.NewCompany(contact.CompanyFields{CompanyName: "Fabrikam", City: "Redmond"})
	for name, e := range map[string]event.Event{
		"event_created.json":             contact.ContactCreatedEvent{Meta: meta, Contact: state}.Stamped(1, 1),
		"event_name_updated.json":        contact.ContactNameUpdatedEvent{Meta: meta, Name: jane},
		"event_description_updated.json": contact.ContactDescriptionUpdatedEvent{Meta: meta, Description: description},
		"event_description_removed.json": contact.ContactDescriptionUpdatedEvent{Meta: meta},
		"event_email_updated.json":       contact.ContactEmailUpdatedEvent{Meta: meta, Email: email},
		"event_email_removed.json":       contact.ContactEmailUpdatedEvent{Meta: meta},
		"event_company_updated.json":     contact.ContactCompanyUpdatedEvent{Meta: meta, Company: company},
		"event_deleted.json":             contact.ContactDeletedEvent{Meta: meta},
	} {
		traceparent := ""
		if e.Action() == contact.ActionNameUpdated {
			traceparent = goldenTraceparent
		}
		o, err := encodeEvent(e, 240*time.Hour, traceparent)
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, name, o)
		// The relay decodes the stored form.
		raw, _ := o.Encode()
		message, isEvent, err := document.EventDecoder{}.Decode(raw)
		if err != nil || !isEvent || message.ID != o.ID || message.Key != o.PartitionKey || message.Action != e.Action() ||
			message.Sequence != e.Metadata().Sequence || message.Traceparent != traceparent || !bytes.Equal(message.Body, o.Data) {
			t.Errorf("%s: the relay reads %+v, %t, %v", name, message, isEvent, err)
		}
	}
}

func TestStoredNotes(t *testing.T) {
	t.Parallel()
	state := goldenState(t)
	request := command.Request{
		Version: 2,
		ID:      "0f1e2d", AggregateID: state.ID, Hash: "a1b2c3", CreatedAt: state.CreatedAt,
		CommandID: uuid.MustParse("d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0"),
	}
	o, err := cosmos.EncodeRequest(request, "contactId", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "request.json", o)
	tombstone, err := cosmos.EncodeTombstone(aggregate.Tombstone{ID: state.ID, Version: 3, Sequence: 5})
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "tombstone.json", tombstone)
	if again, err := cosmos.DecodeRequest("0f1e2d", state.ID, o); err != nil || !cmp.Equal(again, request) {
		t.Errorf("read again: %+v, %v", again, err)
	}
	entry := query.AuditEntry{
		AggregateID: state.ID, Version: 2, At: state.CreatedAt, Principal: "alice",
		Events: []query.AuditedEvent{{ID: request.CommandID, Action: contact.ActionNameUpdated, Sequence: 2}},
	}
	if o, err = cosmos.EncodeAudit(entry, "contactId", 365*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "audit_entry.json", o)
	if again, err := cosmos.DecodeAudit(state.ID, o); err != nil || !cmp.Equal(again, entry) {
		t.Errorf("read again: %+v, %v", again, err)
	}
}

// The hash of the request that created a contact is internal to the store.
func TestEventHasNoRequestHash(t *testing.T) {
	t.Parallel()
	state := goldenState(t)
	state.RequestHash = "a1b2c3"
	stored, err := encodeContact(state, time.Hour)
	if err != nil || !bytes.Contains(stored.Data, []byte(`"requestHash":"a1b2c3"`)) {
		t.Errorf("contact %s, %v", stored.Data, err)
	}
	e, err := encodeEvent(contact.ContactCreatedEvent{Contact: state}, time.Hour, "")
	if err != nil || bytes.Contains(e.Data, []byte("a1b2c3")) {
		t.Errorf("event %s, %v", e.Data, err)
	}
}

type strangeEvent struct{ event.Meta }

func (strangeEvent) Action() string                   { return "StrangeEvent" }
func (e strangeEvent) Stamped(_, _ int64) event.Event { return e }

func TestEventWithoutEncoderIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := encodeEvent(strangeEvent{}, time.Hour, ""); err == nil {
		t.Error("encoded")
	}
}

func TestDecodeContactRefusesOtherDocuments(t *testing.T) {
	t.Parallel()
	o, err := encodeContact(goldenState(t), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	foreign := o
	foreign.ID = "d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0"
	if _, _, err := decodeContact(foreign); err == nil {
		t.Error("a document whose data has another id is accepted")
	}
	broken := o
	broken.Data = json.RawMessage(`{"name":[]}`)
	if _, _, err := decodeContact(broken); err == nil {
		t.Error("data of another shape is accepted")
	}
	other := o
	other.Type = "domainEvent"
	if _, isContact, err := decodeContact(other); isContact || err != nil {
		t.Errorf("an event: is a contact: %t, %v", isContact, err)
	}
}

func FuzzDecodeContact(f *testing.F) {
	fuzzseed.Add(f)
	for _, golden := range goldenDocuments(f).Files {
		f.Add(golden.Data)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := cosmos.DecodeObject(raw)
		if err != nil {
			return
		}
		state, isContact, err := decodeContact(o)
		if err != nil || !isContact {
			return
		}
		again, err := encodeContact(state, time.Hour)
		if err != nil {
			if y := state.CreatedAt.Year(); y >= 0 && y <= 9999 {
				t.Fatalf("%s is decoded but not encoded: %v", raw, err)
			}
			return
		}
		reread, isContact, err := decodeContact(again)
		if err != nil || !isContact || !cmp.Equal(reread, state) {
			t.Errorf("%+v is stored as %s, which is %+v, %v", state, again.Data, reread, err)
		}
	})
}
