package query

import "fmt"

// SyntaxError means that the service's parser refuses the text, too. Pos is the byte offset of the
// first offending character; it is the length of the text if the text ends too early.
type SyntaxError struct {
	Pos  int
	Msg  string
	Code string // of the service, such as SC2204; empty: SC1001, the code of texts that are not a query
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("syntax error at position %d: %s", e.Pos, e.Msg)
}

// UnsupportedError means that the text may be a valid query for the service, but uses a
// construct that this engine does not support. The emulator answers 400 and names it.
type UnsupportedError struct {
	Pos       int    // byte offset of the construct
	Construct string // its name as listed in the package documentation, such as "GROUP BY"
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported by this emulator (at position %d)", e.Construct, e.Pos)
}

// BindError means that a parameter does not fit the query: it is missing, is not JSON, or is
// not a valid count for TOP, OFFSET or LIMIT.
type BindError struct {
	Param string // with its leading @
	Msg   string
}

func (e *BindError) Error() string {
	return fmt.Sprintf("parameter %s: %s", e.Param, e.Msg)
}
