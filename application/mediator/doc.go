// Package mediator finds the handler of a request and those of a domain event.
//
// Requests (commands and queries) go to exactly one handler, found by the
// request's type: Send knows the type of the answer at compile time, since each
// request declares it with a Returns method. Domain events go to every handler
// subscribed to their type, in order of subscription, within the commit that
// stores them. An event nobody handles is an error: it would be lost.
//
// A Mediator is filled first and used after: Register and Subscribe are not safe
// beside Send and Publish. Send and Publish are safe for concurrent use. The
// package starts no goroutines.
package mediator
