package sqlfilter

// Kind is the kind of a Filter.
type Kind string

// The kinds of filter.
const (
	KindTrue        Kind = "True"
	KindFalse       Kind = "False"
	KindCorrelation Kind = "Correlation"
	KindSQL         Kind = "SQL"
	// KindUnknown is a filter that cannot be evaluated. It is stored and listed; a send
	// that would have to evaluate it is refused.
	KindUnknown Kind = "Unknown"
)

// Filter decides whether a message goes to a subscription.
type Filter struct {
	Kind Kind
	// Correlation goes with KindCorrelation: every field that is set must be equal. An
	// empty string or a missing property is not compared.
	Correlation Fields `json:",omitzero"`
	// Expression and Parameters (names with their @) go with KindSQL.
	Expression string
	Parameters []Parameter `json:",omitempty"`
}

// Action is an SQL action, SET and REMOVE, on the copy of a message that passes a rule.
// Each matching rule with an action makes a copy of its own; those without share one.
type Action struct {
	Expression string
	Parameters []Parameter `json:",omitempty"`
}

// Parameter is a named value of an SQL expression. Value is string, bool, int64,
// float64 or time.Time.
type Parameter struct {
	Name  string
	Value any
}

// Condition is a compiled filter.
type Condition struct{ root condition }

// The conditions of KindTrue and KindFalse.
var (
	Always = Condition{constant(isTrue)}
	Never  = Condition{constant(isFalse)}
)

// Matches reports whether the condition is true of a message. f may be nil for Always
// and Never.
func (c Condition) Matches(f *Fields) bool { return c.root.holds(f) == isTrue }

// condition is a node of a compiled filter. Its result has SQL's three values; unknown, from a
// comparison with an absent value, is not true.
type condition interface {
	holds(f *Fields) truth
}

type truth int8

const (
	unknown truth = iota
	isTrue
	isFalse
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

type constant truth

func (c constant) holds(*Fields) truth { return truth(c) }
