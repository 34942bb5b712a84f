package amqp

// DecodeMapSection decodes an annotations, application-properties or footer
// section; nil is an empty map.
func DecodeMapSection(section []byte) (Map, error) {
	if section == nil {
		return nil, nil
	}
	r := NewReader(section)
	r.Descriptor()
	v := r.Value()
	m, ok := v.(Map)
	if !ok && r.err == nil {
		r.fail("map expected, found %T", v)
	}
	return m, r.err
}

// VisitMapSection calls visit with the encoding of every key and value of a map
// section, in order, until it returns false.
func VisitMapSection(section []byte, visit func(key, value []byte) bool) error {
	if section == nil {
		return nil
	}
	r := NewReader(section)
	r.Descriptor()
	count, end := r.compound(r.byte(), codeMap8, codeMap32)
	if count%2 != 0 {
		r.fail("map with %d keys and values", count)
	}
	for range count / 2 {
		k := r.Raw()
		v := r.Raw()
		if r.err != nil {
			return r.err
		}
		if !visit(k, v) {
			return nil
		}
	}
	r.leave(end)
	return r.err
}

// KeyText returns the text of an encoded string or symbol without copying it;
// nil for any other type.
func KeyText(encoded []byte) []byte {
	r := NewReader(encoded)
	switch r.byte() {
	case codeStr8, codeSym8:
		return r.take(int(r.byte()))
	case codeStr32, codeSym32:
		return r.take(r.size32())
	}
	return nil
}

// MapWriter writes a map section entry by entry.
type MapWriter struct {
	b     []byte
	mark  int
	count int
}

// BeginMapSection starts a map section of this descriptor code.
func BeginMapSection(b []byte, code byte) MapWriter {
	b, mark := beginCompound(AppendDescriptor(b, code))
	return MapWriter{b: b, mark: mark}
}

// Symbol adds an entry with a symbol key, as annotations have.
func (w *MapWriter) Symbol(key Symbol, v any) {
	w.b = AppendValue(AppendSymbol(w.b, key), v)
	w.count += 2
}

// String adds an entry with a string key, as application-properties have.
func (w *MapWriter) String(key string, v any) {
	w.b = AppendValue(AppendString(w.b, key), v)
	w.count += 2
}

// Long adds a long under a symbol key.
func (w *MapWriter) Long(key Symbol, v int64) {
	w.b = AppendInt64(AppendSymbol(w.b, key), v)
	w.count += 2
}

// Timestamp adds a timestamp under a symbol key.
func (w *MapWriter) Timestamp(key Symbol, v Timestamp) {
	w.b = AppendTimestamp(AppendSymbol(w.b, key), v)
	w.count += 2
}

// UUID adds a uuid under a symbol key.
func (w *MapWriter) UUID(key Symbol, v UUID) {
	w.b = AppendUUID(AppendSymbol(w.b, key), v)
	w.count += 2
}

// Raw adds an entry of encoded key and value.
func (w *MapWriter) Raw(key, value []byte) {
	w.b = append(append(w.b, key...), value...)
	w.count += 2
}

// Len is the number of entries added.
func (w *MapWriter) Len() int { return w.count / 2 }

// Finish closes the section and returns the buffer.
func (w *MapWriter) Finish() []byte {
	return endCompound(w.b, w.mark, codeMap8, codeMap32, w.count)
}
