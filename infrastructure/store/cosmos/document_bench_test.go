package cosmos_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/contact"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document/contacts"
)

func BenchmarkDecodeContact(b *testing.B) {
	raw := goldenDocument(b, "contact.json")
	kind := contacts.Kind()
	b.ReportAllocs()
	for b.Loop() {
		o, err := cosmos.DecodeObject(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := cosmos.AggregateOf(kind, o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeUpdate(b *testing.B) {
	state := contact.State{
		ID: uuid.New(), FirstName: "Jane", LastName: "Doe", Description: "A contact", Email: "jane@contoso.example",
		Company: contact.CompanyFields{CompanyName: "Contoso"}, CreatedAt: time.Now(), ModifiedAt: time.Now(), Version: 7, Sequence: 7,
	}
	name, err := contact.NewName("Jane", "Doe")
	if err != nil {
		b.Fatal(err)
	}
	meta := event.Meta{ID: uuid.New(), AggregateID: state.ID, CreatedAt: time.Now(), AggregateVersion: 7, Sequence: 7}
	c, err := contact.Rehydrate(state)
	if err != nil {
		b.Fatal(err)
	}
	kind, commit := contacts.Kind(), aggregate.Commit{Version: 7, Sequence: 7}
	b.ReportAllocs()
	for b.Loop() {
		o, err := cosmos.DocumentOf(kind, c, commit, time.Hour)
		if err == nil {
			_, err = o.Encode()
		}
		if err != nil {
			b.Fatal(err)
		}
		if o, err = cosmos.EventDocumentOf(kind, contact.ContactNameUpdatedEvent{Meta: meta, Name: name}, time.Hour, goldenTraceparent); err == nil {
			_, err = o.Encode()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
