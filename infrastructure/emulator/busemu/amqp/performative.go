package amqp

// Performative is the body of a frame: one of Open, Begin, Attach, Flow,
// Transfer, Disposition, Detach, End, Close and the SASL frames.
type Performative interface {
	// Append appends the encoding of the performative.
	Append(b []byte) []byte
	decode(r *Reader)
}

// PerformativeCode returns the descriptor code of a frame body without decoding
// the rest.
func PerformativeCode(body []byte) (uint64, error) {
	r := NewReader(body)
	code := r.Descriptor()
	return code, r.err
}

// DecodePerformative decodes a frame body of a known code into p, which is
// overwritten, and returns the bytes that follow it: the payload of a transfer,
// else empty. p's slices alias body.
func DecodePerformative(body []byte, p Performative) (payload []byte, err error) {
	r := NewReader(body)
	p.decode(&r)
	return r.Rest(), r.err
}

// ParsePerformative decodes a frame body of any kind.
func ParsePerformative(body []byte) (p Performative, payload []byte, err error) {
	code, err := PerformativeCode(body)
	if err != nil {
		return nil, nil, err
	}
	switch code {
	case CodeOpen:
		p = new(Open)
	case CodeBegin:
		p = new(Begin)
	case CodeAttach:
		p = new(Attach)
	case CodeFlow:
		p = new(Flow)
	case CodeTransfer:
		p = new(Transfer)
	case CodeDisposition:
		p = new(Disposition)
	case CodeDetach:
		p = new(Detach)
	case CodeEnd:
		p = new(End)
	case CodeClose:
		p = new(Close)
	case CodeSASLMechanisms:
		p = new(SASLMechanisms)
	case CodeSASLInit:
		p = new(SASLInit)
	case CodeSASLChallenge:
		p = new(SASLChallenge)
	case CodeSASLResponse:
		p = new(SASLResponse)
	case CodeSASLOutcome:
		p = new(SASLOutcome)
	default:
		return nil, nil, unknownCode("performative", code)
	}
	payload, err = DecodePerformative(body, p)
	return p, payload, err
}
