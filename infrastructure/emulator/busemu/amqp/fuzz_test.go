package amqp

import (
	"bytes"
	"slices"
	"testing"

	"feedbox/tests/fuzzseed"
)

// FuzzValue: decoding never panics, a decoded value has a canonical form that is a fixed
// point, and Skip measures the bytes that Value reads.
func FuzzValue(f *testing.F) {
	fuzzseed.Add(f)
	for _, v := range sampleValues() {
		f.Add(AppendValue(nil, v))
	}
	f.Add([]byte{codeArray8, 3, 255, codeNull})
	f.Add([]byte{codeArray32, 0, 0, 0, 5, 255, 255, 255, 255, codeList0})
	f.Add(bytes.Repeat([]byte{codeDescribed}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		v := r.Value()
		if r.Err() != nil {
			return
		}
		used := r.Offset()
		s := NewReader(b)
		s.Skip()
		if s.Err() != nil || s.Offset() != used {
			t.Fatalf("Skip passed %d bytes (%v), Value read %d", s.Offset(), s.Err(), used)
		}
		once := AppendValue(nil, v)
		again, err := DecodeValue(once)
		if err != nil {
			t.Fatalf("own encoding % x of %#v: %v", once, v, err)
		}
		if twice := AppendValue(nil, again); !bytes.Equal(once, twice) {
			t.Fatalf("not a fixed point:\n% x\n% x", once, twice)
		}
	})
}

// FuzzPerformative: the same for frame bodies.
func FuzzPerformative(f *testing.F) {
	fuzzseed.Add(f)
	for _, p := range samplePerformatives() {
		f.Add(p.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, payload, err := ParsePerformative(b)
		if err != nil {
			return
		}
		once := append(p.Append(nil), payload...)
		again, _, err := ParsePerformative(once)
		if err != nil {
			t.Fatalf("own encoding % x of %#v: %v", once, p, err)
		}
		if twice := append(again.Append(nil), payload...); !bytes.Equal(once, twice) {
			t.Fatalf("not a fixed point:\n% x\n% x", once, twice)
		}
	})
}

// FuzzMessage: splitting a message into sections loses no byte, and the decoders of the
// sections do not panic.
func FuzzMessage(f *testing.F) {
	fuzzseed.Add(f)
	for _, b := range sampleMessages(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := SplitMessage(b)
		if err != nil {
			return
		}
		want := b
		if n := len(m.DeliveryAnnotations); n > 0 && bytes.HasSuffix(b, m.DeliveryAnnotations) { // they may come last
			rest := b[len(m.Header) : len(b)-n]
			want = slices.Concat(m.Header, m.DeliveryAnnotations, rest)
		}
		if joined := m.Append(nil); !bytes.Equal(joined, b) && !bytes.Equal(joined, want) {
			t.Fatalf("sections do not join:\n% x\n% x", b, joined)
		}
		if h, err := DecodeHeader(m.Header); err == nil {
			once := h.Append(nil)
			h2, err := DecodeHeader(once)
			if err != nil || h2 != h {
				t.Fatalf("header %+v became %+v (%v)", h, h2, err)
			}
		}
		if p, err := DecodeProperties(m.Properties); err == nil {
			p.Text(GroupID)
			_, _ = p.Value(MessageID)
			if _, err := DecodeProperties(p.Append(nil)); err != nil {
				t.Fatalf("own properties: %v", err)
			}
		}
		for _, s := range [][]byte{m.DeliveryAnnotations, m.MessageAnnotations, m.ApplicationProperties, m.Footer} {
			_, _ = DecodeMapSection(s)
			_ = VisitMapSection(s, func(k, _ []byte) bool { KeyText(k); return true })
		}
		_, _ = m.Data()
		_, _ = m.Value()
	})
}

// FuzzState: delivery states.
func FuzzState(f *testing.F) {
	fuzzseed.Add(f)
	f.Add((&State{Code: CodeTransactionalState, TxnID: []byte("t"), Outcome: StateAccepted}).Append(nil))
	f.Add((&State{Code: CodeDeclared, TxnID: []byte("t")}).Append(nil))
	f.Add(StateAccepted)
	f.Add(Rejected(&Error{Condition: "amqp:not-found", Description: "x", Info: Map{{Symbol("k"), "v"}}}))
	f.Add((&State{Code: CodeModified, UndeliverableHere: true, MessageAnnotations: Map{{Symbol("a"), int32(1)}}}).Append(nil))
	f.Add((&State{Code: CodeReceived, SectionNumber: 2, SectionOffset: 300}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			return
		}
		once := s.Append(nil)
		again, err := DecodeState(once)
		if err != nil {
			t.Fatalf("own state % x: %v", once, err)
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Fatalf("not a fixed point:\n% x\n% x", once, twice)
		}
	})
}

// FuzzFrameHeader: a header that parses describes a frame that can be split.
func FuzzFrameHeader(f *testing.F) {
	f.Add(AppendEmptyFrame(nil))
	f.Add(AppendFrame(nil, FrameSASL, 0, &SASLOutcome{}))
	f.Add(AppendProtocolHeader(nil, ProtocolSASL))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = ParseProtocolHeader(b)
		h, err := ParseFrameHeader(b)
		if err == nil && (h.Size < FrameHeaderSize || int(h.Doff)*4 > int(h.Size)) {
			t.Fatalf("header %+v accepted", h)
		}
	})
}

// FuzzTransactionRequest: no panic, and a decoded request round-trips.
func FuzzTransactionRequest(f *testing.F) {
	f.Add((&TransactionRequest{}).Append(nil))
	f.Add((&TransactionRequest{Discharge: true, TxnID: []byte("t"), Fail: true}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := DecodeTransactionRequest(b)
		if err != nil {
			return
		}
		again, err := DecodeTransactionRequest(q.Append(nil))
		if err != nil || again.Discharge != q.Discharge || again.Fail != q.Fail || string(again.TxnID) != string(q.TxnID) {
			t.Errorf("%+v, again %+v: %v", q, again, err)
		}
	})
}
