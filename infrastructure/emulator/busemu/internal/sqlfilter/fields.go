package sqlfilter

import (
	"fmt"
	"time"
)

// Fields are the parts of a message that filters compare. An empty string is an absent field.
// Values of Properties are string, bool, any integer, float32, float64, time.Time, UUID or
// []byte; other types match no comparison.
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

// UUID is a property value of this AMQP type, in RFC 4122 order.
type UUID [16]byte

// String returns the usual form, in lower case.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
