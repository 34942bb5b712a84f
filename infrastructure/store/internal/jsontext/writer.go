package jsontext

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// errTime reports a time that RFC 3339 cannot represent.
var errTime = errors.New("a time is outside of the years 0 to 9999")

// Writer writes objects member by member: compact, in the order of the calls, and byte for byte
// as encoding/json does. The zero value is ready for use. Done returns the first error.
type Writer struct {
	buf []byte
	err error
}

// NewWriter returns a writer with a buffer of room bytes, which grows.
func NewWriter(room int) *Writer { return &Writer{buf: make([]byte, 0, room)} }

// Extend returns a writer that continues the object that begins with dst.
func Extend(dst []byte) *Writer { return &Writer{buf: dst} }

// Done returns the written text.
func (w *Writer) Done() ([]byte, error) { return w.buf, w.err }

// Object writes an object; the function members writes its members.
func (w *Writer) Object(members func()) {
	w.buf = append(w.buf, '{')
	members()
	w.buf = append(w.buf, '}')
}

// End closes the object that Extend continues.
func (w *Writer) End() { w.buf = append(w.buf, '}') }

// Member writes the name of a member; its value must follow. Names must not need escapes.
func (w *Writer) Member(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

// Text writes a string member.
func (w *Writer) Text(name, value string) {
	w.Member(name)
	w.Value(value)
}

// TextIfAny writes a string member unless it is empty.
func (w *Writer) TextIfAny(name, value string) {
	if value != "" {
		w.Text(name, value)
	}
}

// TextOrNull writes a string member, or null if it is empty.
func (w *Writer) TextOrNull(name, value string) {
	if value == "" {
		w.Raw(name, []byte("null"))
		return
	}
	w.Text(name, value)
}

// Integer writes an integer member.
func (w *Writer) Integer(name string, value int64) {
	w.Member(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
}

// Boolean writes a boolean member.
func (w *Writer) Boolean(name string, value bool) {
	w.Member(name)
	w.buf = strconv.AppendBool(w.buf, value)
}

// UUID writes a member with an id in text form.
func (w *Writer) UUID(name string, value uuid.UUID) {
	w.Member(name)
	w.buf = append(w.buf, '"')
	for i, b := range value {
		if i == 4 || i == 6 || i == 8 || i == 10 { // the form of RFC 9562 4
			w.buf = append(w.buf, '-')
		}
		w.buf = append(w.buf, hexDigits[b>>4], hexDigits[b&0xf])
	}
	w.buf = append(w.buf, '"')
}

const hexDigits = "0123456789abcdef"

// Time writes a time member (RFC 3339).
func (w *Writer) Time(name string, value time.Time) {
	w.Member(name)
	w.buf = append(w.buf, '"')
	buf, err := value.AppendText(w.buf)
	if err != nil {
		w.err = errTime
		return
	}
	w.buf = buf
	w.buf = append(w.buf, '"')
}

// TimeIfAny writes a time member unless it is zero.
func (w *Writer) TimeIfAny(name string, value time.Time) {
	if !value.IsZero() {
		w.Time(name, value)
	}
}

// Raw writes a member with a JSON value.
func (w *Writer) Raw(name string, value []byte) {
	w.Member(name)
	w.buf = append(w.buf, value...)
}

// Value writes a string. Most strings need no escape.
func (w *Writer) Value(text string) {
	if isPlain(text) {
		w.buf = append(w.buf, '"')
		w.buf = append(w.buf, text...)
		w.buf = append(w.buf, '"')
		return
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		w.err = err
		return
	}
	w.buf = append(w.buf, quoted...)
}

// isPlain reports whether text is ASCII that encoding/json writes without escapes.
func isPlain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&', c == 0x7f:
			return false
		}
	}
	return true
}

// Length returns the length of text as a JSON string. It supports ETags: plain text between
// quotes, each of which gets a backslash.
func Length(text string) int {
	if last := len(text) - 1; last > 0 && text[0] == '"' && text[last] == '"' && isPlain(text[1:last]) {
		return len(text) + len(`"\\"`)
	}
	var w Writer
	w.Value(text)
	return len(w.buf)
}
