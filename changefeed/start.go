package changefeed

import (
	"errors"
	"fmt"
	"time"
)

// Start says where a processor begins that finds no leases. A lease that has a
// checkpoint always goes on from it; use an Operator to rewind one. The zero
// value is FromBeginning.
type Start struct {
	now    bool
	since  time.Time
	tokens []RangeToken
	err    error // what is wrong with it
}

// RangeToken is a position in one feed range.
type RangeToken struct {
	Range        FeedRange `json:"range"`
	Continuation string    `json:"continuation,omitempty"`
	Since        time.Time `json:"since,omitzero"`
}

// FromBeginning starts with the oldest change the container still has.
func FromBeginning() Start { return Start{} }

// FromNow starts with the first change made after the leases were created.
// Initialisation turns it into a concrete continuation for every range before
// anything is processed, so that a first page that fails, or a restart before
// the first change, skips nothing.
func FromNow() Start { return Start{now: true} }

// FromTime starts with the changes made at or after t, to the service's
// precision of some seconds.
func FromTime(t time.Time) Start {
	if t.IsZero() {
		return Start{err: errors.New("start: FromTime needs a time, FromBeginning has none")}
	}
	return Start{since: t}
}

// FromTokens starts at saved positions, such as Operator.Export returns. They
// must tile the processor's scope; a range served by several physical ranges
// today hands its position to each of them.
func FromTokens(tokens ...RangeToken) Start {
	if len(tokens) == 0 {
		return Start{err: errors.New("start: FromTokens needs at least one token")}
	}
	for _, t := range tokens {
		if err := t.Range.validate(); err != nil {
			return Start{err: fmt.Errorf("start: %w", err)}
		}
	}
	return Start{tokens: tokens}
}
