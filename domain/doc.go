// Package domain is the root of the business model: contacts, the events they
// raise, and the faults that end a use case.
//
// The model is pure, so that every rule can be tested without a store or a clock. It reads
// no clock, no random source and no environment: times and ids are arguments. It does no I/O
// and does not log, and it imports only the standard library and google/uuid. Every rule
// about the content of a contact lives here.
//
// Folders:
//
//   - aggregate: identity, version and pending events of every aggregate root
//   - contact: the Contact aggregate, its value objects and its events
//   - event: the common fields of domain events, and the recorder of an aggregate
//   - fault: the kinds of failure that all layers share
package domain
