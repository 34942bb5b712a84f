// Package application is the root of the use cases: what clients may ask of the
// contacts service and what the relay does with stored events.
//
// How a change flows:
//
//	transport ──Send(command)──▶ mediator ──▶ command handler
//	                                            │ reads the contact through its unit of work,
//	                                            │ calls the aggregate's verbs, commits
//	                                            ▼
//	                                      UnitOfWork.Commit
//	                                            │ asks each contact what is pending and
//	                                            │ publishes its events through the mediator
//	                                            ▼
//	                                      event handlers ──▶ put event documents into the
//	                                            │            same unit of work
//	                                            ▼
//	                                      one transactional batch: events and contact
//
// Sub-packages:
//
//   - mediator: typed requests and domain events;
//   - command: one file per use case that changes a contact, and their ports;
//   - query: one file per use case that reads, their views and ports;
//   - event: what happens to domain events within a commit;
//   - relay: from stored events to the broker.
//
// The package imports the standard library, google/uuid and the domain only.
// Ports stand beside their callers and name the fault kinds they return.
package application
