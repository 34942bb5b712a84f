package amqp

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"feedbox/tests/testenv"

	goamqp "github.com/Azure/go-amqp"
)

// TestRandomMessagesAgreeWithGoAMQP: messages of random values by go-amqp come back unchanged
// through this codec.
func TestRandomMessagesAgreeWithGoAMQP(t *testing.T) {
	rng := testenv.Random(t)
	for range 500 {
		sent := randomMessage(rng)
		b, err := sent.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		m, err := SplitMessage(b)
		if err != nil {
			t.Fatalf("% x: %v", b, err)
		}
		var want, got goamqp.Message
		if err := want.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if err := got.UnmarshalBinary(reencode(t, m)); err != nil {
			t.Fatalf("go-amqp refuses the second encoding: %v", err)
		}
		if !reflect.DeepEqual(&want, &got) {
			t.Fatalf("sent %#v\nread %#v", want, got)
		}
	}
}

func randomMessage(rng *rand.Rand) *goamqp.Message {
	m := &goamqp.Message{}
	if rng.IntN(2) == 0 {
		m.Header = &goamqp.MessageHeader{Durable: rng.IntN(2) == 0, Priority: uint8(rng.IntN(10)), TTL: time.Duration(rng.IntN(1e6)) * time.Millisecond, DeliveryCount: rng.Uint32N(5)}
	}
	if rng.IntN(2) == 0 {
		m.Annotations = goamqp.Annotations{}
		for range rng.IntN(40) {
			m.Annotations[randomText(rng)] = randomValue(rng, 3)
		}
	}
	if rng.IntN(2) == 0 {
		subject, group := randomText(rng), randomText(rng)
		m.Properties = &goamqp.MessageProperties{MessageID: []any{"id", uint64(7), goamqp.UUID{3}, []byte{1}}[rng.IntN(4)], Subject: &subject, GroupID: &group}
	}
	if rng.IntN(2) == 0 {
		m.ApplicationProperties = map[string]any{}
		for range rng.IntN(200) {
			m.ApplicationProperties[randomText(rng)] = randomScalar(rng)
		}
	}
	switch rng.IntN(3) {
	case 0:
		for range 1 + rng.IntN(3) {
			m.Data = append(m.Data, make([]byte, rng.IntN(600)))
		}
	case 1:
		m.Value = randomValue(rng, 4)
		if m.Value == nil {
			m.Value = "nothing"
		}
	default:
		m.Sequence = [][]any{{randomValue(rng, 2), randomValue(rng, 2)}}
	}
	return m
}

func randomText(rng *rand.Rand) string {
	return fmt.Sprintf("%0*d", 1+rng.IntN(300), rng.Uint32())
}

func randomScalar(rng *rand.Rand) any {
	switch rng.IntN(15) {
	case 0:
		return rng.IntN(2) == 0
	case 1:
		return uint8(rng.Uint32())
	case 2:
		return uint16(rng.Uint32())
	case 3:
		return rng.Uint32N(1 << rng.IntN(32))
	case 4:
		return rng.Uint64N(1 << rng.IntN(63))
	case 5:
		return int8(rng.Uint32())
	case 6:
		return int16(rng.Uint32())
	case 7:
		return int32(rng.Uint32()) >> rng.IntN(31)
	case 8:
		return int64(rng.Uint64()) >> rng.IntN(63)
	case 9:
		return rng.Float32()
	case 10:
		return rng.Float64()
	case 11:
		return time.UnixMilli(rng.Int64N(1 << 40)).UTC()
	case 12:
		return goamqp.UUID{byte(rng.Uint32())}
	case 13:
		return []byte(randomText(rng))
	default:
		return randomText(rng)
	}
}

func randomValue(rng *rand.Rand, depth int) any {
	if depth == 0 {
		return randomScalar(rng)
	}
	switch rng.IntN(8) {
	case 0:
		return []any{randomValue(rng, depth-1), randomValue(rng, depth-1)}
	case 1:
		return map[string]any{"a": randomValue(rng, depth-1), "b": randomValue(rng, depth-1)}
	case 2:
		return []int64{rng.Int64(), 1, -1}
	case 3:
		return []string{randomText(rng), ""}
	case 4:
		return []goamqp.UUID{{1}, {2}}
	case 5:
		return []bool{true, false}
	default:
		return randomScalar(rng)
	}
}
