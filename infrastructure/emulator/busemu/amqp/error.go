package amqp

// Error is the error type of Close, End, Detach and Rejected (part 2, section 2.8.14). It
// implements error.
type Error struct {
	Condition   Symbol
	Description string
	Info        Map
}

func (e *Error) Error() string {
	if e.Description == "" {
		return string(e.Condition)
	}
	return string(e.Condition) + ": " + e.Description
}

func (e *Error) append(b []byte) []byte {
	w := beginComposite(b, CodeError)
	w.set(AppendSymbol(w.b, e.Condition))
	w.stringOrNull(e.Description)
	w.mapOrNull(e.Info)
	return w.finish()
}

func decodeError(r *Reader) *Error {
	f := r.composite(CodeError, 3)
	var e Error
	if f.required("condition") {
		e.Condition = Symbol(f.Text())
	}
	e.Description = f.text()
	e.Info = f.mapping()
	f.finish()
	return &e
}

func (f *fields) error() *Error {
	if f.present() {
		return decodeError(f.Reader)
	}
	return nil
}

func (w *fieldWriter) errorOrNull(e *Error) {
	if e == nil {
		w.null()
		return
	}
	w.set(e.append(w.b))
}
