package amqp

import (
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
)

// sampleValues has at least one value of every AMQP type and every width.
func sampleValues() []any {
	long := strings.Repeat("x", 300)
	return []any{
		nil, true, false, uint8(7), uint16(7), uint32(0), uint32(255), uint32(256), uint64(0), uint64(9), uint64(1 << 40),
		int8(-1), int16(-300), int32(-128), int32(1 << 20), int64(127), int64(-1 << 40), float32(1.5), float64(-2.5),
		Char('ß'), Timestamp(1700000000123),
		UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		Decimal32{1},
		Decimal64{2},
		Decimal128{3},
		[]byte{},
		[]byte("ab"), []byte(long), "", "text", long, Symbol("sym"), Symbol(long),
		List{},
		List{nil, "a", List{int32(1)}},
		Map{},
		Map{{Symbol("k"), "v"}, {int32(1), Map{{"x", nil}}}},
		Described{Descriptor: uint64(0x137000000C), Value: "session"},
		Described{Descriptor: Symbol("a:b"), Value: List{}},
		SymbolArray("a", "b"), SymbolArray(), LongArray([]int64{1, -1, 1 << 50}), TimestampArray([]Timestamp{1, 2}),
		Array{Type: codeUUID, Elems: []any{UUID{1}, UUID{2}}},
		Array{Type: codeBool, Elems: []any{true, false}},
		Array{Type: codeUint, Elems: []any{uint32(0), uint32(1 << 30)}},
		Array{Type: codeUlong, Elems: []any{uint64(1)}},
		Array{Type: codeInt, Elems: []any{int32(-1)}},
		Array{Type: codeStr8, Elems: []any{"a", long}},
		Array{Type: codeVbin8, Elems: []any{[]byte("a"), []byte(long)}},
		Array{Type: codeNull, Elems: []any{nil, nil}},
		Array{Type: codeList8, Elems: []any{List{}, List{"a"}}},
		Array{Type: codeMap8, Elems: []any{Map{{"a", "b"}}}},
		Array{Type: codeArray8, Elems: []any{SymbolArray("x")}},
		Array{Type: codeUbyte, Elems: []any{uint8(1)}},
		Array{Type: codeStr8, Descriptor: uint64(5), Elems: []any{"d"}},
		make(List, 300),
	}
}

func samplePerformatives() []Performative {
	e := &Error{Condition: "amqp:not-allowed", Description: "no", Info: Map{{Symbol("x"), int32(1)}}}
	return []Performative{
		&Open{
			ContainerID: "c", Hostname: "h", MaxFrameSize: 65536, ChannelMax: 99, IdleTimeout: 30000, Properties: Map{{Symbol("product"), "p"}},
			IncomingLocales: []Symbol{"en-US"}, OfferedCapabilities: []Symbol{"a", "b"},
		},
		&Open{ContainerID: "d", MaxFrameSize: defaultMaxFrameSize, ChannelMax: defaultChannelMax},
		&Begin{RemoteChannel: Some(uint16(3)), IncomingWindow: 5000, OutgoingWindow: 5000, HandleMax: 10}, &Begin{HandleMax: defaultHandleMax},
		&Attach{
			Name: "l", Handle: 1, Role: RoleReceiver, SndSettleMode: Some(SenderSettled), RcvSettleMode: Some(ReceiverSecond),
			Source: &Source{Address: Some("q"), Filter: Map{{Symbol("f"), Described{uint64(1), nil}}}, DefaultOutcome: StateReleased, Outcomes: []Symbol{"amqp:accepted:list"}},
			Target: &Target{Address: Some(""), Durable: 1, ExpiryPolicy: "never"}, InitialDeliveryCount: Some(uint32(0)), MaxMessageSize: 1 << 20,
		},
		&Attach{Name: "tx", Target: &Target{Coordinator: true}},
		&Flow{NextIncomingID: Some(uint32(1)), IncomingWindow: 2, NextOutgoingID: 3, OutgoingWindow: 4, Handle: Some(uint32(0)), DeliveryCount: Some(uint32(5)), LinkCredit: Some(uint32(0)), Drain: true},
		&Transfer{Handle: 1, DeliveryID: Some(uint32(0)), DeliveryTag: []byte{1, 2}, MessageFormat: Some(uint32(BatchFormat)), More: true, State: StateAccepted},
		&Disposition{Role: RoleReceiver, First: 1, Last: Some(uint32(9)), Settled: true, State: Rejected(e)},
		&Detach{Handle: 3, Closed: true, Error: e}, &End{}, &End{Error: e}, &Close{Error: e},
		&SASLMechanisms{Mechanisms: []Symbol{"PLAIN", "ANONYMOUS"}}, &SASLInit{Mechanism: "ANONYMOUS", InitialResponse: []byte{}, Hostname: "h"},
		&SASLChallenge{Challenge: []byte("c")}, &SASLResponse{Response: []byte("r")}, &SASLOutcome{Code: SASLAuth, AdditionalData: []byte("Welcome!")},
	}
}

// sampleMessages are encodings by go-amqp, the codec on the other side of the
// wire.
func sampleMessages(tb testing.TB) [][]byte {
	tb.Helper()
	text := func(s string) *string { return &s }
	messages := []*goamqp.Message{
		{},
		goamqp.NewMessage([]byte("hello")),
		{Data: [][]byte{[]byte("a"), {}, []byte("b")}, Footer: goamqp.Annotations{"f": "x"}},
		{Value: map[string]any{"a": int64(1)}},
		{Value: goamqp.Null{}},
		{Sequence: [][]any{{"a", int32(1)}, {}}},
		{
			Header:              &goamqp.MessageHeader{Durable: true, Priority: 3, TTL: time.Minute, FirstAcquirer: true, DeliveryCount: 3},
			DeliveryAnnotations: goamqp.Annotations{"x-opt-lock-token": goamqp.UUID{1}},
			Annotations:         goamqp.Annotations{"x-opt-partition-key": "pk", int64(5): "n"},
			Properties: &goamqp.MessageProperties{
				MessageID: "id", UserID: []byte("u"), To: text("to"), Subject: text("s"), ReplyTo: text("r"), CorrelationID: uint64(9),
				ContentType: text("application/json"), GroupID: text("g"), GroupSequence: new(uint32), ReplyToGroupID: text("rg"),
				CreationTime: &time.Time{}, AbsoluteExpiryTime: &time.Time{}, ContentEncoding: text("gzip"),
			},
			ApplicationProperties: map[string]any{"a": int32(1), "b": "x", "c": time.UnixMilli(1700000000000), "d": goamqp.UUID{9}, "e": 1.5, "f": []byte("z")},
			Data:                  [][]byte{[]byte(strings.Repeat("body", 100))},
		},
	}
	out := make([][]byte, 0, len(messages))
	for _, m := range messages {
		b, err := m.MarshalBinary()
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}
