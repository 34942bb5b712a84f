package fault

// Kind says what went wrong in terms a caller can act on. Adapters map what they
// meet to a kind; transports map a kind to a status. The zero value is Internal.
type Kind uint8

const (
	// Internal is everything nobody foresaw: log it, show nothing of it.
	Internal Kind = iota
	// Invalid is input that breaks a rule. Error.Fields names every breach.
	Invalid
	// NotFound is a thing that does not exist, or is deleted.
	NotFound
	// NotModified is a conditional read whose condition says "you have it already".
	NotModified
	// Conflict is a creation of what exists already.
	Conflict
	// PreconditionFailed is a write against a state that has moved on.
	PreconditionFailed
	// Gone is a thing that did exist and was deleted on purpose.
	Gone
	// TooLarge is a request beyond a limit of the service or of its store.
	TooLarge
	// Throttled is a refusal for lack of capacity. Error.RetryAfter says when to come back.
	Throttled
	// Unavailable is a failure that may pass. The request may be repeated.
	Unavailable
)

// String returns the kind as a lower-case word for logs and metrics.
func (k Kind) String() string {
	switch k {
	case Invalid:
		return "invalid"
	case NotFound:
		return "not_found"
	case NotModified:
		return "not_modified"
	case Conflict:
		return "conflict"
	case PreconditionFailed:
		return "precondition_failed"
	case Gone:
		return "gone"
	case TooLarge:
		return "too_large"
	case Throttled:
		return "throttled"
	case Unavailable:
		return "unavailable"
	default:
		return "internal"
	}
}
