package broker

import (
	"encoding/binary"
	"errors"
)

// A message record is immutable. It has a version byte, flags, times and strings, and the
// payload or the sequence number of the shared payload. A state record has the changes by
// settlements; a new one replaces the old one.
const recordVersion = 1

const (
	flagSession = 1 << iota
	flagShared
	flagScheduled
	flagDeferred
	flagOverlay
)

var errRecord = errors.New("malformed record")

// appendMessage appends m's record without the payload.
func appendMessage(buf []byte, m *message) []byte {
	b := m.body
	flags := byte(0)
	if b.hasSession {
		flags |= flagSession
	}
	if b.shared {
		flags |= flagShared
	}
	if m.scheduledAt != 0 {
		flags |= flagScheduled
	}
	buf = append(buf, recordVersion, flags)
	buf = binary.AppendVarint(buf, m.firstSeq)
	buf = binary.AppendVarint(buf, m.enqueuedAt)
	buf = binary.AppendVarint(buf, m.expiresAt)
	buf = binary.AppendVarint(buf, b.ttl)
	if m.scheduledAt != 0 {
		buf = binary.AppendVarint(buf, m.scheduledAt)
	}
	buf = appendString(buf, b.id)
	buf = appendString(buf, b.partition)
	if b.hasSession {
		buf = appendString(buf, b.session)
	}
	if b.shared {
		buf = binary.AppendVarint(buf, b.sequence)
	}
	return buf
}

// parseMessage is the inverse of appendMessage. The body has a copy of the payload, unless the
// payload is shared.
func parseMessage(record []byte) (*message, error) {
	r := reader{rest: record}
	if r.byte() != recordVersion {
		return nil, errRecord
	}
	flags := r.byte()
	if flags&^(flagSession|flagShared|flagScheduled) != 0 {
		return nil, errRecord
	}
	m := &message{body: &body{hasSession: flags&flagSession != 0, shared: flags&flagShared != 0}}
	m.firstSeq, m.enqueuedAt, m.expiresAt, m.body.ttl = r.varint(), r.varint(), r.varint(), r.varint()
	if flags&flagScheduled != 0 {
		if m.scheduledAt = r.varint(); m.scheduledAt == 0 {
			r.failed = true
		}
	}
	m.body.id, m.body.partition = r.string(), r.string()
	if m.body.hasSession {
		m.body.session = r.string()
	}
	if m.body.shared {
		m.body.sequence = r.varint()
		if len(r.rest) > 0 {
			return nil, errRecord
		}
	} else {
		m.body.payload = append([]byte{}, r.rest...)
	}
	if r.failed {
		return nil, errRecord
	}
	return m, nil
}

// appendState appends the state record of m.
func appendState(buf []byte, m *message) []byte {
	flags := byte(0)
	if m.deferred {
		flags |= flagDeferred
	}
	if m.overlay != nil {
		flags |= flagOverlay
	}
	buf = append(buf, recordVersion, flags)
	buf = binary.AppendUvarint(buf, uint64(m.attempts))
	if o := m.overlay; o != nil {
		buf = appendString(buf, o.source)
		buf = appendString(buf, o.reason)
		buf = appendString(buf, o.description)
		buf = binary.AppendUvarint(buf, uint64(len(o.properties)))
		for _, p := range o.properties {
			buf = appendString(buf, p.Name)
			buf = appendString(buf, string(p.Value))
		}
	}
	return buf
}

// parseState is the inverse of appendState.
func parseState(record []byte, m *message) error {
	r := reader{rest: record}
	if r.byte() != recordVersion {
		return errRecord
	}
	flags := r.byte()
	if flags&^(flagDeferred|flagOverlay) != 0 {
		return errRecord
	}
	m.recorded, m.deferred = true, flags&flagDeferred != 0
	attempts := r.uvarint()
	if attempts > 1<<16-1 {
		return errRecord
	}
	m.attempts = uint16(attempts)
	if flags&flagOverlay != 0 {
		o := &overlay{source: r.string(), reason: r.string(), description: r.string()}
		for n := r.uvarint(); n > 0 && !r.failed; n-- {
			o.properties = append(o.properties, Property{Name: r.string(), Value: []byte(r.string())})
		}
		m.overlay = o
	}
	if r.failed || len(r.rest) > 0 {
		return errRecord
	}
	return nil
}

func appendString(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// reader reads a record. After a failure it returns zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.rest) {
		r.failed, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		n = -1
	}
	if r.take(n) == nil {
		return 0
	}
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		n = -1
	}
	if r.take(n) == nil {
		return 0
	}
	return v
}

func (r *reader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return ""
	}
	return string(r.take(int(n)))
}
