package amqp

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	goamqp "github.com/Azure/go-amqp"
)

func TestTypesRoundTrip(t *testing.T) {
	for _, v := range sampleValues() {
		b := AppendValue(nil, v)
		got, err := DecodeValue(b)
		if err != nil {
			t.Errorf("%#v: %v", v, err)
			continue
		}
		if twice := AppendValue(nil, got); !bytes.Equal(b, twice) {
			t.Errorf("%#v: % x became % x", v, b, twice)
		}
		if _, isArray := v.(Array); !isArray && !reflect.DeepEqual(got, v) {
			t.Errorf("%#v became %#v", v, got)
		}
		if a, isArray := v.(Array); isArray && len(a.Elems) > 0 && !reflect.DeepEqual(got.(Array).Elems, a.Elems) {
			t.Errorf("%#v became %#v", v, got)
		}
		r := NewReader(append(b, 0x40))
		if r.Skip(); r.Offset() != len(b) || r.Err() != nil {
			t.Errorf("%#v: Skip passed %d of %d bytes (%v)", v, r.Offset(), len(b), r.Err())
		}
	}
}

func TestPerformativesRoundTrip(t *testing.T) {
	for _, p := range samplePerformatives() {
		b := p.Append(nil)
		got, payload, err := ParsePerformative(append(b, "payload"...))
		if err != nil {
			t.Errorf("%#v: %v", p, err)
			continue
		}
		if string(payload) != "payload" {
			t.Errorf("%T: payload %q", p, payload)
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%#v became %#v", p, got)
		}
	}
}

// TestEveryPrefixIsRefused: no prefix of a valid performative decodes.
func TestEveryPrefixIsRefused(t *testing.T) {
	for _, p := range samplePerformatives() {
		b := p.Append(nil)
		for n := range b {
			if _, _, err := ParsePerformative(b[:n]); err == nil {
				t.Errorf("%T: %d of %d bytes decode", p, n, len(b))
			}
		}
	}
}

// TestNamesForDescriptorsAreRead: Proton names declare and discharge.
func TestNamesForDescriptorsAreRead(t *testing.T) {
	named := func(name string, fields ...byte) []byte {
		value := append(AppendSymbol([]byte{codeDescribed}, Symbol(name)), fields...)
		return append(AppendDescriptor(nil, CodeValue), value...)
	}
	discharge := append([]byte{codeList8, 5, 2}, AppendBool(AppendBinary(nil, []byte("t")), true)...)
	q, err := DecodeTransactionRequest(named("amqp:discharge:list", discharge...))
	if err != nil || !q.Discharge || string(q.TxnID) != "t" || !q.Fail {
		t.Errorf("discharge: %+v, %v", q, err)
	}
	if _, err := DecodeTransactionRequest(named("amqp:own:list", codeList0)); err == nil {
		t.Error("a name of no type decodes")
	}
}

func TestLongDescriptorsAreRead(t *testing.T) {
	// begin with its descriptor as an 8-byte ulong, as peers may write it.
	b := []byte{0, codeUlong, 0, 0, 0, 0, 0, 0, 0, CodeEnd, codeList0}
	p, _, err := ParsePerformative(b)
	if _, ok := p.(*End); err != nil || !ok {
		t.Fatalf("got %T, %v", p, err)
	}
}

// TestMessagesAgreeWithGoAMQP: this codec splits, decodes and encodes messages of go-amqp
// value by value, and go-amqp reads the same message back.
func TestMessagesAgreeWithGoAMQP(t *testing.T) {
	for i, b := range sampleMessages(t) {
		m, err := SplitMessage(b)
		if err != nil {
			t.Errorf("message %d: %v", i, err)
			continue
		}
		var want, got goamqp.Message
		if err := want.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if err := got.UnmarshalBinary(reencode(t, m)); err != nil {
			t.Errorf("message %d: go-amqp refuses the second encoding: %v", i, err)
			continue
		}
		if !reflect.DeepEqual(&want, &got) {
			t.Errorf("message %d:\nsent %#v\nread %#v", i, want, got)
		}
	}
}

// reencode decodes every section to values and writes them again.
func reencode(t *testing.T, m Message) []byte {
	t.Helper()
	var out []byte
	if m.Header != nil {
		h, err := DecodeHeader(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		out = h.Append(out)
	}
	section := func(code byte, s []byte) {
		if s == nil {
			return
		}
		entries, err := DecodeMapSection(s)
		if err != nil {
			t.Fatal(err)
		}
		w := BeginMapSection(out, code)
		for _, e := range entries {
			w.Raw(AppendValue(nil, e.Key), AppendValue(nil, e.Value))
		}
		out = w.Finish()
	}
	section(CodeDeliveryAnnotations, m.DeliveryAnnotations)
	section(CodeMessageAnnotations, m.MessageAnnotations)
	if m.Properties != nil {
		p, err := DecodeProperties(m.Properties)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p {
			v, err := p.Value(Property(i))
			if err != nil {
				t.Fatal(err)
			}
			if v != nil {
				p[i] = AppendValue(nil, v)
			}
		}
		out = p.Append(out)
	}
	section(CodeApplicationProperties, m.ApplicationProperties)
	r := NewReader(m.Body)
	for r.Len() > 0 {
		code := r.Descriptor()
		out = AppendValue(AppendDescriptor(out, byte(code)), r.Value())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	section(CodeFooter, m.Footer)
	return out
}

func TestGUIDOrderIsItsOwnInverse(t *testing.T) {
	u := UUID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	want := [16]byte{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}
	if u.GUID() != want {
		t.Fatalf("got % x", u.GUID())
	}
	if UUID(UUID(u.GUID()).GUID()) != u {
		t.Fatal("not an inverse")
	}
}

func TestZeroWidthArraysDoNotAmplify(t *testing.T) {
	// 5,000 arrays that each claim 4,000 nulls in 8 bytes.
	var b []byte
	for range 5000 {
		b = append(b, codeArray32, 0, 0, 0, 5, 0, 0, 15, 160, codeNull)
	}
	r := NewReader(b)
	for r.Len() > 0 {
		r.Value()
	}
	if r.Err() == nil {
		t.Fatal("20 million elements were decoded from 50 kB")
	}
}

// The Python SDK puts the delivery-annotations after the body, or after the footer.
func TestDeliveryAnnotationsLast(t *testing.T) {
	annotations := append(AppendDescriptor(nil, CodeDeliveryAnnotations), 0xc1, 1, 0)
	body := AppendData(nil, []byte("x"))
	footer := append(AppendDescriptor(nil, CodeFooter), 0xc1, 1, 0)
	for _, rest := range [][]byte{body, slices.Concat(body, footer)} {
		m, err := SplitMessage(slices.Concat(rest, annotations))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m.Append(nil), slices.Concat(annotations, rest); !bytes.Equal(got, want) {
			t.Errorf("joined % x, want % x", got, want)
		}
	}
	for what, b := range map[string][]byte{
		"twice": slices.Concat(annotations, body, annotations), "before the body's end": slices.Concat(body, annotations, body),
		"before the footer": slices.Concat(body, annotations, footer),
	} {
		if _, err := SplitMessage(b); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
