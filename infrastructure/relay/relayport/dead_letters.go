package relayport

import (
	"context"
	"errors"
	"time"
)

// The errors of dead letters.
var (
	ErrNoConsumer = errors.New("there is no such consumer")
	ErrNoLetter   = errors.New("the dead letter is not in the queue any more, or another reader has locked it")
)

// DeadLetter is an event in the dead-letter queue of a consumer.
type DeadLetter struct {
	ID string // in its queue
	// Event, Key, Action and Sequence are those of the event; "" and 0 if they are unknown.
	Event, Key, Action string
	Sequence           int64
	// Reason and Description are those of the consumer or the broker; "" if they are unknown.
	Reason, Description string
	EnqueuedAt          time.Time // zero if it is unknown
	Deliveries          int       // 0 if the number is unknown
	Headers             map[string]string
	Body                []byte
}

// DeadLetters are the dead-letter queues of the consumers of a broker. Implementations are safe for
// concurrent use.
type DeadLetters interface {
	// Reach returns the other readers of a resubmission to a consumer, for example "topic orders";
	// "" if only the consumer receives it.
	Reach(consumer string) string
	// Read returns up to limit dead letters, the oldest first, and whether there are more. It changes
	// nothing, but other readers may miss letters meanwhile. Error: ErrNoConsumer.
	Read(ctx context.Context, consumer string, limit int) (letters []DeadLetter, more bool, err error)
	// Claim locks dead letters by their ids, so that no other reader gets them. It omits those that it
	// cannot find. The caller must release the claim.
	Claim(ctx context.Context, consumer string, ids []string) (LetterClaim, error)
}

// LetterClaim is a set of locked dead letters. It serves one goroutine. Error of Resubmit and Remove:
// ErrNoLetter if the letter is not in the claim.
type LetterClaim interface {
	// Resubmit sends a letter to its consumer again and returns after the broker has accepted it. The
	// letter stays in the queue until Remove, so a crash in between does not lose it.
	Resubmit(ctx context.Context, id string, r Resubmission) error
	// Remove removes a letter from the queue.
	Remove(ctx context.Context, id string) error
	// Release unlocks the remaining letters.
	Release(ctx context.Context)
}

// Resubmission describes how a dead letter is sent again.
type Resubmission struct {
	// ID is the same for every attempt, so that the duplicate window or the inbox drops a repeat. It has
	// at most 64 letters, digits and hyphens.
	ID string
	// Body replaces the body of the letter unless it is nil.
	Body []byte
}
