package sqlfilter

import (
	"fmt"
	"time"
)

// Fields are the parts of a message that filters can compare. An empty string means
// that the field is absent. Values of Properties are string, bool, any integer,
// float32, float64, time.Time, UUID or []byte; others match no comparison.
type Fields struct {
	MessageID        string
	CorrelationID    string
	To               string
	ReplyTo          string
	Subject          string
	SessionID        string
	ReplyToSessionID string
	ContentType      string
	Properties       map[string]any // application properties

	// Set by the broker; a correlation filter does not compare them.
	PartitionKey   string    `json:"-"`
	EnqueuedAt     time.Time `json:"-"`
	SequenceNumber int64     `json:"-"`
}

// UUID is a property's value of that type, in RFC 4122 order.
type UUID [16]byte

// String is the usual form, in lower case.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
