package changefeed

import (
	"errors"
	"fmt"
	"time"
)

// Start is the position of a processor that finds no leases. A lease that has a checkpoint
// always continues from it; use an Operator to rewind one. The zero value is FromBeginning.
type Start struct {
	now    bool
	since  time.Time
	tokens []RangeToken
	err    error // its fault, if any
}

// RangeToken is a position in one feed range.
type RangeToken struct {
	Range        FeedRange `json:"range"`
	Continuation string    `json:"continuation,omitempty"`
	Since        time.Time `json:"since,omitzero"`
}

// FromBeginning starts with the oldest change the container still has.
func FromBeginning() Start { return Start{} }

// FromNow starts with the first change made after the leases were created. Initialization
// resolves it to a concrete continuation for every range before anything is processed.
// Otherwise a failed first page, or a restart before the first change, would skip changes.
func FromNow() Start { return Start{now: true} }

// FromTime starts with the changes made at or after t, to the service's precision of some
// seconds.
func FromTime(t time.Time) Start {
	if t.IsZero() {
		return Start{err: errors.New("start: FromTime needs a time; use FromBeginning to start with the oldest change")}
	}
	return Start{since: t}
}

// FromTokens starts at saved positions, such as those of Operator.Export. They must tile
// the processor's scope. If several physical ranges serve a token's range today, each of
// them starts at its position.
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
