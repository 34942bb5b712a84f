package query

import "fmt"

// SyntaxError says that the text is not a query: a 400 of the service with its
// code SC1001. Pos is the byte offset of the first offending character; it equals
// the length of the text when the text ends too early.
type SyntaxError struct {
	Pos int
	Msg string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("syntax error at position %d: %s", e.Pos, e.Msg)
}

// UnsupportedError says that the text may be a query of the service, but uses a
// construct this engine does not have. The emulator answers 400 and names it.
type UnsupportedError struct {
	Pos       int    // byte offset of the construct
	Construct string // its name as listed in the package documentation, such as "GROUP BY"
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported by this emulator (at position %d)", e.Construct, e.Pos)
}

// BindError says that the parameters do not fit the query: one is missing, is not
// JSON, or stands where only a count is possible (TOP, OFFSET, LIMIT).
type BindError struct {
	Param string // with its leading @
	Msg   string
}

func (e *BindError) Error() string {
	return fmt.Sprintf("parameter %s: %s", e.Param, e.Msg)
}
