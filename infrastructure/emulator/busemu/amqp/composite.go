package amqp

import "fmt"

// fields reads the field list of a composite type (part 1, section 1.4). Fields
// after the last one present read as null. Errors stick to the Reader.
type fields struct {
	*Reader
	left int // fields not yet read
	end  int // position after the list
}

// beginFields consumes the constructor of the list that follows a descriptor.
// A list of more than limit fields is refused.
func (r *Reader) beginFields(limit int) fields {
	c := r.byte()
	if c == codeList0 {
		return fields{Reader: r, end: r.pos}
	}
	count, end := r.compound(c, codeList8, codeList32)
	if count > limit {
		r.fail("%d fields in a type of %d", count, limit)
	}
	return fields{Reader: r, left: count, end: end}
}

// composite consumes a descriptor, which must be code, and the start of its list.
func (r *Reader) composite(code uint64, limit int) fields {
	if d := r.Descriptor(); r.err == nil && d != code {
		r.fail("descriptor 0x%02x expected, found 0x%02x", code, d)
	}
	return r.beginFields(limit)
}

// finish checks that the list held exactly its fields.
func (f *fields) finish() {
	for f.left > 0 && f.err == nil {
		f.left--
		f.Skip()
	}
	f.leave(f.end)
}

// present reports whether the next field is there and not null; a null is
// consumed.
func (f *fields) present() bool {
	if f.left == 0 || f.err != nil {
		return false
	}
	f.left--
	return !f.Null()
}

// required is present, but the absence of the field is an error.
func (f *fields) required(name string) bool {
	if f.present() {
		return true
	}
	f.fail("mandatory field %s is missing", name)
	return false
}

func (f *fields) bool() bool { return f.present() && f.Bool() }

func (f *fields) text() string {
	if f.present() {
		return f.Text()
	}
	return ""
}

func (f *fields) binary() []byte {
	if f.present() {
		return f.Binary()
	}
	return nil
}

func (f *fields) uint32() uint32 {
	if f.present() {
		return f.Uint32()
	}
	return 0
}

func (f *fields) uint64() uint64 {
	if f.present() {
		return f.Uint64()
	}
	return 0
}

func (f *fields) optionalUint32() Optional[uint32] {
	if f.present() {
		return Some(f.Uint32())
	}
	return Optional[uint32]{}
}

func (f *fields) optionalUint8() Optional[uint8] {
	if f.present() {
		return Some(f.Uint8())
	}
	return Optional[uint8]{}
}

func (f *fields) optionalText() Optional[string] {
	if f.present() {
		return Some(f.Text())
	}
	return Optional[string]{}
}

func (f *fields) mapping() Map {
	if !f.present() {
		return nil
	}
	v := f.Value()
	m, ok := v.(Map)
	if !ok && f.err == nil {
		f.fail("map expected, found %T", v)
	}
	return m
}

// symbols reads a multiple="true" symbol field: one symbol or an array of them.
func (f *fields) symbols() []Symbol {
	if !f.present() {
		return nil
	}
	switch v := f.Value().(type) {
	case Symbol:
		return []Symbol{v}
	case Array:
		out := make([]Symbol, 0, len(v.Elems))
		for _, e := range v.Elems {
			s, ok := e.(Symbol)
			if !ok {
				f.fail("symbol expected, found %T", e)
				return nil
			}
			out = append(out, s)
		}
		return out
	default:
		f.fail("symbols expected, found %T", v)
		return nil
	}
}

// raw returns the bytes of the next field, nil when it is null.
func (f *fields) raw() []byte {
	if f.present() {
		return f.Raw()
	}
	return nil
}

// fieldWriter writes the field list of a composite type, trailing nulls included:
// they may be left out (part 1, section 1.4), but the Python SDK (pyamqp _connection.py,
// session.py, link.py) reads fields by their index without looking at the count, and
// does not know the empty list as the body of a frame.
type fieldWriter struct {
	b     []byte
	mark  int // start of the list
	count int // fields written
}

func beginComposite(b []byte, code byte) fieldWriter {
	b, mark := beginCompound(AppendDescriptor(b, code))
	return fieldWriter{b: b, mark: mark}
}

// finish returns the buffer with the list closed.
func (w *fieldWriter) finish() []byte {
	if w.count == 0 {
		w.b[w.mark] = codeList0
		return w.b[:w.mark+1]
	}
	return endCompound(w.b, w.mark, codeList8, codeList32, w.count)
}

func (w *fieldWriter) set(b []byte) {
	w.b = b
	w.count++
}

func (w *fieldWriter) null() {
	w.b = append(w.b, codeNull)
	w.count++
}

func (w *fieldWriter) uint32(v uint32) { w.set(AppendUint32(w.b, v)) }

// uint32Unless writes null for the field's default.
func (w *fieldWriter) uint32Unless(v, def uint32) {
	if v == def {
		w.null()
		return
	}
	w.uint32(v)
}

func (w *fieldWriter) uint64Unless(v, def uint64) {
	if v == def {
		w.null()
		return
	}
	w.set(AppendUint64(w.b, v))
}

func (w *fieldWriter) bool(v bool) { w.set(AppendBool(w.b, v)) }

func (w *fieldWriter) trueOrNull(v bool) {
	if !v {
		w.null()
		return
	}
	w.bool(true)
}

func (w *fieldWriter) stringOrNull(v string) {
	if v == "" {
		w.null()
		return
	}
	w.set(AppendString(w.b, v))
}

func (w *fieldWriter) symbolOrNull(v Symbol) {
	if v == "" {
		w.null()
		return
	}
	w.set(AppendSymbol(w.b, v))
}

// binaryOrNull writes nil as null and an empty slice as an empty binary.
func (w *fieldWriter) binaryOrNull(v []byte) {
	if v == nil {
		w.null()
		return
	}
	w.set(AppendBinary(w.b, v))
}

func (w *fieldWriter) optionalUint32(v Optional[uint32]) {
	if !v.Set {
		w.null()
		return
	}
	w.uint32(v.Value)
}

func (w *fieldWriter) optionalUint8(v Optional[uint8]) {
	if !v.Set {
		w.null()
		return
	}
	w.set(AppendUint8(w.b, v.Value))
}

func (w *fieldWriter) optionalString(v Optional[string]) {
	if !v.Set {
		w.null()
		return
	}
	w.set(AppendString(w.b, v.Value))
}

func (w *fieldWriter) mapOrNull(v Map) {
	if len(v) == 0 {
		w.null()
		return
	}
	w.set(AppendValue(w.b, v))
}

func (w *fieldWriter) symbolsOrNull(v []Symbol) {
	if len(v) == 0 {
		w.null()
		return
	}
	w.set(AppendValue(w.b, SymbolArray(v...)))
}

// rawOrNull writes the encoding v as it is.
func (w *fieldWriter) rawOrNull(v []byte) {
	if len(v) == 0 {
		w.null()
		return
	}
	w.set(append(w.b, v...))
}

// unknownCode is the error for a descriptor that is none of a kind.
func unknownCode(kind string, code uint64) error {
	return &DecodeError{Reason: fmt.Sprintf("0x%02x is not a %s", code, kind)}
}
