// Package contact holds the Contact aggregate: a person at a company.
//
// A Contact is changed by verbs only (UpdateName, UpdateDescription,
// UpdateEmail, UpdateCompany, Delete). A verb takes value objects, which cannot
// be built from invalid input, and records an event; a verb that changes nothing
// records nothing. A verb on a deleted contact is fault.NotFound.
//
// Committing is a pair: Pending says what a commit has to store (the next
// version, the events with their sequences) and changes nothing; Committed
// confirms that it was stored. Between the two no verb may be called. A commit
// that failed is simply not confirmed: the contact and its events stay as they
// were and Pending gives the same answer again.
//
//	New ──verbs──▶ new ──Pending/Committed──▶ stored ──verbs──▶ changed ──Pending/Committed──▶ stored
//	                                            │
//	                                            └──Delete, Pending/Committed──▶ deleted (final)
//
// A contact that is created again under the id of a deleted one continues its version
// and sequence (Tombstone), also when nothing else is left of it.
//
// A new contact raises only ContactCreatedEvent, which carries the contact as it
// is committed, whatever verbs were called before that.
//
// The text rules of all fields are in rules.go.
package contact
