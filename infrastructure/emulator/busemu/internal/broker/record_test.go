package broker

import (
	"bytes"
	"reflect"
	"testing"

	"feedbox/tests/fuzzseed"
)

func sampleMessages() []*message {
	return []*message{
		{body: &body{payload: []byte{}}},
		{body: &body{payload: []byte("payload"), id: "id", session: "", hasSession: true, partition: "p", ttl: 5}, firstSeq: 7, enqueuedAt: -1, expiresAt: 1 << 62},
		{body: &body{id: "id", shared: true, sequence: 9}, scheduledAt: 77},
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	for _, m := range sampleMessages() {
		got, err := parseMessage(append(appendMessage(nil, m), m.body.payload...))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v %+v, want %+v: %v", got, got.body, m, err)
		}
	}
	want := &message{
		attempts: 3, deferred: true, recorded: true,
		overlay: &overlay{source: "s", reason: "r", description: "d", properties: []Property{{"a", []byte{1, 2}}, {"b", []byte{}}}},
	}
	got := &message{}
	if err := parseState(appendState(nil, want), got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v: %v", got, err)
	}
}

// FuzzMessageRecord: no panic, and an accepted record is written again unchanged.
func FuzzMessageRecord(f *testing.F) {
	fuzzseed.Add(f)
	for _, m := range sampleMessages() {
		f.Add(append(appendMessage(nil, m), m.body.payload...))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		m, err := parseMessage(record)
		if err != nil {
			return
		}
		again, err := parseMessage(append(appendMessage(nil, m), m.body.payload...))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v came back as %+v: %v", m, again, err)
		}
	})
}

// FuzzStateRecord: no panic, bounded memory, and an accepted record round-trips.
func FuzzStateRecord(f *testing.F) {
	fuzzseed.Add(f)
	f.Add(appendState(nil, &message{attempts: 2, deferred: true}))
	f.Add(appendState(nil, &message{overlay: &overlay{reason: "r", properties: []Property{{"a", []byte{1}}}}}))
	f.Add([]byte{1, flagOverlay, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, record []byte) {
		m := &message{}
		if err := parseState(record, m); err != nil {
			return
		}
		again := &message{}
		if err := parseState(appendState(nil, m), again); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v came back as %+v: %v", m, again, err)
		}
	})
}

func TestLockTokensRoundTrip(t *testing.T) {
	seen := make(map[LockToken]bool)
	for sequence := int64(1); sequence < 1000; sequence += 7 {
		m := &message{sequence: sequence, nonce: uint64(sequence) * 0x9e3779b97f4a7c15}
		got, nonce := m.token().open()
		if got != sequence || nonce != m.nonce || seen[m.token()] {
			t.Errorf("token of %d opens as %d", sequence, got)
		}
		seen[m.token()] = true
	}
	if bytes.Equal((&message{sequence: 1, nonce: 2}).veiled(), (&message{sequence: 1, nonce: 3}).veiled()) {
		t.Error("the sequence number shows in the token")
	}
}

func (m *message) veiled() []byte {
	t := m.token()
	return t[8:]
}
