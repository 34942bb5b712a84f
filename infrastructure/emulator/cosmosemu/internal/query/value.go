package query

// Kind is the type of a value, in the order in which ORDER BY sorts types.
type Kind uint8

// The kinds, from the smallest to the largest in sort order.
const (
	Undefined Kind = iota
	Null
	Boolean
	Number
	String
	Array
	Object
)

// Value is one JSON value, or undefined (the zero Value).
type Value struct {
	kind Kind
	raw  []byte
}

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Bool returns the value of a Boolean; false for any other kind.
func (v Value) Bool() bool { return false }

// Float returns the value of a Number; 0 for any other kind.
func (v Value) Float() float64 { return 0 }

// Text returns the characters of a String, unescaped; "" for any other kind.
func (v Value) Text() string { return "" }

// AppendJSON appends the value as JSON text. Numbers keep the spelling they had.
// Undefined appends nothing.
func (v Value) AppendJSON(dst []byte) []byte { return append(dst, v.raw...) }
