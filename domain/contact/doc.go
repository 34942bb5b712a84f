// Package contact holds the Contact aggregate: a person at a company.
//
// Only verbs change a Contact (UpdateName, UpdateDescription, UpdateEmail, UpdateCompany,
// Delete). A verb takes value objects, which cannot be built from invalid input, and records
// an event. A verb that changes nothing records nothing. A verb on a deleted contact returns
// fault.NotFound.
//
// Package aggregate describes commits, and how a contact continues a deleted one.
//
// A new contact raises only ContactCreatedEvent. The event carries the contact as it is
// committed, including the changes of verbs called before the commit.
//
// The text rules of all fields are in rules.go.
package contact
