// Package strictjson reads JSON (RFC 8259) as a tree and notices what
// encoding/json lets pass: members named twice, invalid UTF-8, escapes that
// are half of a surrogate pair, and anything after the value.
//
// A request body goes through it once, so that each fault can be reported
// with a JSON pointer (RFC 6901) and absent, null and empty members stay
// distinct, as a merge patch (RFC 7396) needs.
//
// The tree holds no reference to the input. Depth is bounded by the caller,
// size by the length of the input. The package starts no goroutines.
package strictjson

import (
	"fmt"
	"strings"
)

// Kind is the type of a value.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String names the kind with its article, for messages.
func (k Kind) String() string {
	switch k {
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "an array"
	case Object:
		return "an object"
	default:
		return "null"
	}
}

// Value is one value. Which fields are set depends on Kind.
type Value struct {
	Kind Kind
	// Text is the decoded text of a String and the literal of a Number.
	Text string
	// True is the value of a Bool.
	True bool
	// Members are those of an Object, in the order of the input.
	Members []Member
	// Elements are those of an Array.
	Elements []Value
}

// Member is one name and its value.
type Member struct {
	Name  string
	Value Value
}

// Document is a parsed text.
type Document struct {
	Root Value
	// Duplicates are pointers to members whose name occurred before in the
	// same object.
	Duplicates []string
}

// SyntaxError says that the text is not JSON.
type SyntaxError struct {
	// Offset is the byte at which reading stopped, from 0.
	Offset int
	// Problem completes "at byte N: ".
	Problem string
}

// Error returns position and problem.
func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Problem) }

// DepthError says that arrays and objects are nested too deeply. What follows
// was not read.
type DepthError struct {
	// Pointer leads to the value that is too deep.
	Pointer string
	// Max is the depth that was allowed.
	Max int
}

// Error names the limit.
func (e *DepthError) Error() string { return fmt.Sprintf("nested deeper than %d levels", e.Max) }

// Pointer appends a member name to a JSON pointer, escaped as RFC 6901 §3.
func Pointer(parent, name string) string {
	return parent + "/" + pointerEscaper.Replace(name)
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
