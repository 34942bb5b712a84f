package fault

// Kind classifies a failure by how a caller can react. Adapters map their errors to a kind;
// transports map a kind to a status. The zero value is Internal.
type Kind uint8

const (
	// Internal is an unexpected failure. It is logged and not shown to clients.
	Internal Kind = iota
	// Invalid is input that breaks a rule. Error.Fields lists the broken rules.
	Invalid
	// NotFound means that the thing does not exist or is deleted.
	NotFound
	// NotModified means that the client of a conditional read has the current state.
	NotModified
	// Conflict means that the thing to create exists already.
	Conflict
	// PreconditionFailed is a write based on an outdated state.
	PreconditionFailed
	// Gone means that the thing existed and was deleted on purpose.
	Gone
	// TooLarge is a request beyond a limit of the service or of its store.
	TooLarge
	// Throttled is a refusal for lack of capacity. Retry after Error.RetryAfter.
	Throttled
	// Unavailable is a transient failure. The request may be retried.
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
