package changefeed

import (
	"fmt"
	"time"
)

// Start says where a processor begins that finds no leases. A lease that has a
// checkpoint always goes on from it; use an Operator to rewind one. The zero
// value is FromBeginning.
type Start struct {
	kind   startKind
	since  time.Time
	tokens []RangeToken
}

type startKind int

const (
	startBeginning startKind = iota
	startNow
	startTime
	startTokens
)

// RangeToken is a position in one feed range.
type RangeToken struct {
	Range        FeedRange `json:"range"`
	Continuation string    `json:"continuation,omitempty"`
	Since        time.Time `json:"since,omitzero"`
}

// FromBeginning starts with the oldest change the container still has.
func FromBeginning() Start { return Start{kind: startBeginning} }

// FromNow starts with the first change made after the leases were created.
// Initialisation turns it into a concrete continuation for every range before
// anything is processed, so that a first page that fails, or a restart before
// the first change, skips nothing.
func FromNow() Start { return Start{kind: startNow} }

// FromTime starts with the changes made at or after t, to the service's
// precision of some seconds.
func FromTime(t time.Time) Start { return Start{kind: startTime, since: t} }

// FromTokens starts at saved positions, such as Operator.Export returns. They
// must tile the processor's scope; a range served by several physical ranges
// today hands its position to each of them.
func FromTokens(tokens ...RangeToken) Start { return Start{kind: startTokens, tokens: tokens} }

func (s Start) validate() error {
	switch s.kind {
	case startBeginning, startNow:
	case startTime:
		if s.since.IsZero() {
			return fmt.Errorf("start: FromTime needs a time, FromBeginning has none")
		}
	case startTokens:
		if len(s.tokens) == 0 {
			return fmt.Errorf("start: FromTokens needs at least one token")
		}
		for _, t := range s.tokens {
			if err := t.Range.validate(); err != nil {
				return fmt.Errorf("start: %w", err)
			}
		}
	}
	return nil
}
