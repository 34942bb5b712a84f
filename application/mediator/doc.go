// Package mediator dispatches requests and domain events to their handlers.
//
// A request (command or query) has exactly one handler, found by the request's type. Each
// request declares the type of its answer with a Returns method, so that Send is checked at
// compile time. A domain event goes to every handler subscribed to its type, in the order of
// subscription, within the commit that stores it. An event without a handler is an error,
// because it would be lost.
//
// Register and Subscribe must not be called concurrently with Send or Publish: fill the
// Mediator first. Send and Publish are safe for concurrent use. The package starts no
// goroutines.
package mediator
