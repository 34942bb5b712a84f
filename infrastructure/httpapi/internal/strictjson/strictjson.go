package strictjson

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The limits that keep a text from costing far more than its length.
const (
	maxMembers    = 256 // of an object; more is a LimitError
	maxDuplicates = 100 // that are reported
	maxPointer    = 256 // of a pointer, in bytes; the rest is cut off
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
	// Members are those of an Object, in the order of the input. The elements of an
	// Array are not kept: no body has one.
	Members []Member
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
	// same object, the first maxDuplicates of them.
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

// LimitError says that the text goes beyond a limit. What follows was not read.
type LimitError struct {
	// Pointer leads to the value that does.
	Pointer string
	// Problem completes "must not ".
	Problem string
}

// Error names the limit.
func (e *LimitError) Error() string { return "must not " + e.Problem }

// Pointer appends a member name to a JSON pointer, escaped as RFC 6901 §3. A
// pointer of more than maxPointer bytes is cut off and ends in "…".
func Pointer(parent, name string) string {
	pointer := parent + "/" + pointerEscaper.Replace(name[:min(len(name), maxPointer+1)])
	if len(pointer) <= maxPointer {
		return pointer
	}
	end := maxPointer
	for !utf8.RuneStart(pointer[end]) || pointer[end-1] == '~' { // no half of a character or escape
		end--
	}
	return pointer[:end] + "…"
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
