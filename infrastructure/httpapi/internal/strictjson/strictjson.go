// Package strictjson parses JSON (RFC 8259) into a tree. It reports faults that
// encoding/json accepts silently: duplicate members, invalid UTF-8, half of a surrogate
// pair, and data after the value.
//
// A request body is parsed once. Each fault is reported with a JSON pointer (RFC 6901), and
// absent, null and empty members stay distinct, as a merge patch (RFC 7396) needs.
//
// The tree holds no reference to the input. The caller bounds the depth. Memory is bounded
// by a multiple of the input length: elements of arrays are checked but not kept, and
// members, reported duplicates and the length of pointers have limits. The package starts
// no goroutines.
package strictjson

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// These limits bound the cost of a text by its length.
const (
	maxMembers    = 256 // of an object; more is a LimitError
	maxDuplicates = 100 // reported
	maxPointer    = 256 // bytes of a pointer; the rest is truncated
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
	// Members holds the members of an Object in the order of the input. The elements of an
	// Array are not kept, because no body has one.
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
	// Duplicates holds pointers to members whose name occurred before in the same object,
	// at most maxDuplicates of them.
	Duplicates []string
}

// SyntaxError means that the text is not JSON.
type SyntaxError struct {
	// Offset is the byte at which parsing stopped, from 0.
	Offset int
	// Problem completes "at byte N: ".
	Problem string
}

// Error returns position and problem.
func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Problem) }

// LimitError means that the text exceeds a limit. The rest of the text was not read.
type LimitError struct {
	// Pointer identifies the value that exceeds the limit.
	Pointer string
	// Problem completes "must not ".
	Problem string
}

// Error returns the limit.
func (e *LimitError) Error() string { return "must not " + e.Problem }

// Pointer appends a member name to a JSON pointer, escaped as RFC 6901 §3. A pointer of more
// than maxPointer bytes is truncated and ends in "…".
func Pointer(parent, name string) string {
	pointer := parent + "/" + pointerEscaper.Replace(name[:min(len(name), maxPointer+1)])
	if len(pointer) <= maxPointer {
		return pointer
	}
	end := maxPointer
	for !utf8.RuneStart(pointer[end]) || pointer[end-1] == '~' { // do not split a character or an escape
		end--
	}
	return pointer[:end] + "…"
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
