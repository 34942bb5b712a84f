// Package contact holds the Contact aggregate: a person at a company.
//
// A Contact is changed by verbs only (UpdateName, UpdateDescription,
// UpdateEmail, UpdateCompany, Delete). A verb takes value objects, which cannot
// be built from invalid input, and records an event; a verb that changes nothing
// records nothing. A verb on a deleted contact is fault.NotFound.
//
// How it is committed, and what continues a deleted contact, is what all aggregates share:
// package aggregate.
//
// A new contact raises only ContactCreatedEvent, which carries the contact as it
// is committed, whatever verbs were called before that.
//
// The text rules of all fields are in rules.go.
package contact
