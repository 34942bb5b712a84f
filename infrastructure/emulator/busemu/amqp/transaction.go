package amqp

// TransactionRequest is a controller's request to a coordinator: declare, or discharge of a
// transaction (part 4, sections 4.5.5 and 4.5.6).
type TransactionRequest struct {
	Discharge bool
	TxnID     []byte // of discharge
	Fail      bool   // of discharge: roll back
}

// DecodeTransactionRequest reads the body of a message to a coordinator.
func DecodeTransactionRequest(message []byte) (TransactionRequest, error) {
	var q TransactionRequest
	m, err := SplitMessage(message)
	if err != nil {
		return q, err
	}
	r := NewReader(m.Body)
	if code := r.Descriptor(); r.err == nil && code != CodeValue {
		r.fail("an amqp-value expected, found descriptor 0x%02x", code)
	}
	switch code := r.Descriptor(); {
	case r.err != nil:
		return q, r.err
	case code == CodeDeclare:
		f := r.beginFields(1)
		if f.present() {
			f.Skip()
			r.fail("a declare with a global-id, which is for distributed transactions")
		}
		f.finish()
	case code == CodeDischarge:
		q.Discharge = true
		f := r.beginFields(2)
		q.TxnID = f.binary()
		q.Fail = f.bool()
		f.finish()
	default:
		return q, unknownCode("request to a coordinator", code)
	}
	if r.err == nil && r.pos != len(m.Body) {
		r.fail("%d bytes follow the request", len(m.Body)-r.pos)
	}
	return q, r.err
}

// Append appends the request as a message.
func (q *TransactionRequest) Append(b []byte) []byte {
	b = AppendDescriptor(b, CodeValue)
	if !q.Discharge {
		w := beginComposite(b, CodeDeclare)
		return w.finish()
	}
	w := beginComposite(b, CodeDischarge)
	w.set(AppendBinary(w.b, q.TxnID))
	w.bool(q.Fail)
	return w.finish()
}
