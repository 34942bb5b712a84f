// Package event holds what every domain event carries and the recorder that
// aggregates keep their events in until they are committed.
//
// An event is a value. It is recorded without a version and a sequence: both are
// given by the commit that stores it, so that a commit which fails uses none up.
package event
