// Package sqs sends events to a FIFO queue of Amazon SQS in the order of their keys.
//
//	event ──▶ message: group id = key, deduplication id = event id, body = the event as stored
//
// A group is delivered in order, and a message whose deduplication id the queue has seen within
// five minutes is accepted and dropped, so a repeat within that window does no harm. Later ones
// are for the consumer's inbox.
//
// Up to ten messages go in a request, each of another key: a request may fail for some of its
// messages, and a later message of a key must not pass one that failed. Requests go beside each
// other. A message counts as sent once the answer names it as successful.
//
// The queue may not carry every event: a body is XML 1.0 text for the service, so a few
// characters are refused (Refused, "invalid_characters"), and a key that is no group id is sent
// as the hash of itself (GroupID).
package sqs
