package cosmos

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// errTime is of a time that RFC 3339 cannot write.
var errTime = errors.New("a time is outside of the years 0 to 9999")

// jsonWriter writes objects member by member: compact, in the order of the calls,
// and byte for byte as encoding/json does. The zero value is ready. What could not be
// written is told by done.
type jsonWriter struct {
	buf []byte
	err error
}

// newJSONWriter returns a writer with room for so many bytes. It takes more too.
func newJSONWriter(room int) *jsonWriter { return &jsonWriter{buf: make([]byte, 0, room)} }

// done returns what was written.
func (w *jsonWriter) done() ([]byte, error) { return w.buf, w.err }

// object writes an object whose members are written by members.
func (w *jsonWriter) object(members func()) {
	w.buf = append(w.buf, '{')
	members()
	w.buf = append(w.buf, '}')
}

// member writes the name of a member; its value has to follow. Names need no escape.
func (w *jsonWriter) member(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *jsonWriter) text(name, value string) {
	w.member(name)
	w.value(value)
}

// textIfAny leaves the member out where the value is empty.
func (w *jsonWriter) textIfAny(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

// textOrNull writes null where the value is empty.
func (w *jsonWriter) textOrNull(name, value string) {
	if value == "" {
		w.raw(name, []byte("null"))
		return
	}
	w.text(name, value)
}

func (w *jsonWriter) integer(name string, value int64) {
	w.member(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
}

func (w *jsonWriter) boolean(name string, value bool) {
	w.member(name)
	w.buf = strconv.AppendBool(w.buf, value)
}

func (w *jsonWriter) uuid(name string, value uuid.UUID) {
	w.member(name)
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

func (w *jsonWriter) time(name string, value time.Time) {
	w.member(name)
	w.buf = append(w.buf, '"')
	buf, err := value.AppendText(w.buf)
	if err != nil {
		w.err = errTime
		return
	}
	w.buf = buf
	w.buf = append(w.buf, '"')
}

// timeIfAny leaves the member out where the time is zero.
func (w *jsonWriter) timeIfAny(name string, value time.Time) {
	if !value.IsZero() {
		w.time(name, value)
	}
}

// raw writes a value that is JSON already.
func (w *jsonWriter) raw(name string, value []byte) {
	w.member(name)
	w.buf = append(w.buf, value...)
}

// value writes a string. Most need no escape.
func (w *jsonWriter) value(text string) {
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

// isPlain tells the strings that encoding/json writes as they are, of ASCII.
func isPlain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&', c == 0x7f:
			return false
		}
	}
	return true
}
