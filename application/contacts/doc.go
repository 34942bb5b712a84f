// Package contacts holds the use cases of contacts, one per file: the input, its answer and the
// handler. RegisterCommands, RegisterQueries and SubscribeEvents connect them to a mediator.
//
// The value objects of the domain validate the input. Handlers merge their faults, so that a
// client sees all of them at once.
//
// Views (view.go) are a contact as clients see it. They are plain data, shared by queries and
// by commands that answer with a contact.
package contacts
