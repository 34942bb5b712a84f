// Package application is the root of the use cases: the requests of the contacts service and
// the work of the relay.
//
// How a change flows:
//
//	transport ──Send(command)──▶ mediator ──▶ command handler
//	                                            │ reads the contact through its unit of work,
//	                                            │ calls the aggregate's verbs, commits
//	                                            ▼
//	                                      UnitOfWork.Commit
//	                                            │ takes the pending commit of each contact and
//	                                            │ publishes its events through the mediator
//	                                            ▼
//	                                      event handlers ──▶ put event documents into the
//	                                            │            same unit of work
//	                                            ▼
//	                                      one transactional batch: events and contact
//
// Folders:
//
//   - command: how a command changes one aggregate, idempotency keys included
//   - contacts: the use cases of contacts, one per file, and their views
//   - mediator: dispatch of typed requests and of domain events
//   - query: reading aggregates, pages of them and audit trails
//   - relay: publishing stored events to the broker, and parked events
//
// The packages import only the standard library, google/uuid and the domain. A port is
// declared in the package that calls it, and names the fault kinds that it returns.
package application
