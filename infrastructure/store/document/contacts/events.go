package contacts

import (
	"fmt"

	"feedbox/domain/contact"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/internal/jsontext"
)

// events returns the encoders of a contact's events. An optional value that was removed is
// null.
func events() map[string]document.EventEncoder {
	return map[string]document.EventEncoder{
		contact.ActionCreated: shape(func(w *jsontext.Writer, e contact.ContactCreatedEvent) {
			created := e.Contact
			created.RequestHash = "" // internal to the store
			w.Member("contact")
			writeContact(w, created)
		}),
		contact.ActionNameUpdated: shape(func(w *jsontext.Writer, e contact.ContactNameUpdatedEvent) {
			writeName(w, e.Name.First(), e.Name.Last())
		}),
		contact.ActionDescriptionUpdated: shape(func(w *jsontext.Writer, e contact.ContactDescriptionUpdatedEvent) {
			w.TextOrNull("description", e.Description.Text())
		}),
		contact.ActionEmailUpdated: shape(func(w *jsontext.Writer, e contact.ContactEmailUpdatedEvent) {
			w.TextOrNull("email", e.Email.Address())
		}),
		contact.ActionCompanyUpdated: shape(func(w *jsontext.Writer, e contact.ContactCompanyUpdatedEvent) {
			writeCompany(w, e.Company.Fields())
		}),
		contact.ActionDeleted: shape(func(*jsontext.Writer, contact.ContactDeletedEvent) {}),
	}
}

// shape returns an encoder that calls write.
func shape[E event.Event](write func(w *jsontext.Writer, e E)) document.EventEncoder {
	return func(dst []byte, e event.Event) ([]byte, error) {
		typed, ok := e.(E)
		if !ok {
			return nil, fmt.Errorf("%s is a %T, its shape is that of a %T", e.Action(), e, typed)
		}
		w := jsontext.Extend(dst)
		write(w, typed)
		return w.Done()
	}
}
