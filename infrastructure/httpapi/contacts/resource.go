package contacts

import (
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/infrastructure/httpapi"
)

// Resource returns the contact resource. Every request becomes one command or query sent
// through m.
func Resource(m *mediator.Mediator) httpapi.Resource {
	r := routes{m}
	return httpapi.Resource{
		Noun: contacts.Noun,
		Routes: []httpapi.Route{
			httpapi.Create(httpapi.Operation{Event: "ContactCreatedEvent"}, r.create),
			httpapi.List(httpapi.Operation{}, r.list),
			httpapi.Read(httpapi.Operation{}, r.read),
			httpapi.Patch(httpapi.Operation{}, r.patch),
			httpapi.Delete(httpapi.Operation{Description: "Deleting it again succeeds and changes nothing. The personal data of the contact is removed at once. Events and messages keep theirs until they expire."}, r.delete),
			httpapi.Change("update-name", replace("name", "ContactNameUpdatedEvent"), r.updateName),
			httpapi.Change("update-description", replace("description", "ContactDescriptionUpdatedEvent"), r.updateDescription),
			httpapi.Change("update-email", replace("email", "ContactEmailUpdatedEvent"), r.updateEmail),
			httpapi.Change("update-company", replace("company", "ContactCompanyUpdatedEvent"), r.updateCompany),
			httpapi.Audit(httpapi.Operation{ID: "readAudit"}, r.audit),
		},
	}
}

// routes answers requests through the application.
type routes struct{ *mediator.Mediator }

// replace documents the update of a part of a contact.
func replace(part, event string) httpapi.Operation {
	return httpapi.Operation{
		Summary: "Replace the " + part + " of a contact", Event: event,
		Reply: "The contact has the new " + part + ".",
	}
}
