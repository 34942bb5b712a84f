// Package contacts holds the use cases of contacts, one per file: the input, its answer,
// and the handler. Register makes a mediator answer them and put the events of contacts
// into the outbox (outbox.go).
//
// Validation happens in the domain's value objects; handlers merge their faults,
// so that a client learns of all of them at once.
//
// Views (view.go) are what clients see of a contact. They are plain data and are
// shared by queries and by commands that answer with a contact.
package contacts
