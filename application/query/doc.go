// Package query holds the use cases that read, one per file: the input, its
// answer, and the handler. Register makes a mediator answer them. Nothing here
// changes a contact.
//
// Views (view.go) are what clients see of a contact. They are plain data and are
// shared by queries and by commands that answer with a contact.
package query
