package amqp

// State is a decoded delivery state (part 3, section 3.4). Code determines which fields have a
// meaning.
type State struct {
	// Code is CodeReceived, CodeAccepted, CodeRejected, CodeReleased, CodeModified,
	// CodeDeclared or CodeTransactionalState (part 4, sections 4.5.7 and 4.5.8).
	Code uint64

	Error *Error // rejected

	DeliveryFailed     bool // modified
	UndeliverableHere  bool // modified
	MessageAnnotations Map  // modified

	SectionNumber uint32 // received
	SectionOffset uint64 // received

	TxnID   []byte // declared, transactional-state
	Outcome []byte // transactional-state: the encoded outcome; nil: none
}

// Encodings of the states that carry no fields, to be used as they are.
var (
	StateAccepted = []byte{codeDescribed, codeSmallUlong, CodeAccepted, codeList0}
	StateReleased = []byte{codeDescribed, codeSmallUlong, CodeReleased, codeList0}
)

// Rejected returns the encoded state rejected with this error; nil is allowed.
func Rejected(e *Error) []byte {
	return (&State{Code: CodeRejected, Error: e}).Append(nil)
}

// Append appends the encoding of the state.
func (s *State) Append(b []byte) []byte {
	w := beginComposite(b, byte(s.Code))
	switch s.Code {
	case CodeReceived:
		w.uint32(s.SectionNumber)
		w.set(AppendUint64(w.b, s.SectionOffset))
	case CodeRejected:
		w.errorOrNull(s.Error)
	case CodeModified:
		w.trueOrNull(s.DeliveryFailed)
		w.trueOrNull(s.UndeliverableHere)
		w.mapOrNull(s.MessageAnnotations)
	case CodeDeclared:
		w.set(AppendBinary(w.b, s.TxnID))
	case CodeTransactionalState:
		w.set(AppendBinary(w.b, s.TxnID))
		w.rawOrNull(s.Outcome)
	}
	return w.finish()
}

// DecodeState decodes the delivery state in b.
func DecodeState(b []byte) (State, error) {
	r := NewReader(b)
	s := State{Code: r.Descriptor()}
	if r.err != nil {
		return s, r.err
	}
	var f fields
	switch s.Code {
	case CodeAccepted, CodeReleased:
		f = r.beginFields(0)
	case CodeRejected:
		f = r.beginFields(1)
		s.Error = f.error()
	case CodeModified:
		f = r.beginFields(3)
		s.DeliveryFailed = f.bool()
		s.UndeliverableHere = f.bool()
		s.MessageAnnotations = f.mapping()
	case CodeReceived:
		f = r.beginFields(2)
		s.SectionNumber = f.uint32()
		s.SectionOffset = f.uint64()
	case CodeDeclared:
		f = r.beginFields(1)
		s.TxnID = f.binary()
	case CodeTransactionalState:
		f = r.beginFields(2)
		s.TxnID = f.binary()
		s.Outcome = f.raw()
	default:
		return s, unknownCode("delivery state", s.Code)
	}
	f.finish()
	if r.err == nil && r.pos != len(b) {
		r.fail("%d bytes follow the state", len(b)-r.pos)
	}
	return s, r.err
}
