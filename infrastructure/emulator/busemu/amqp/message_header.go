package amqp

// Header is the header section (part 3, section 3.2.1).
type Header struct {
	Durable       bool
	Priority      Optional[uint8]  // null: 4
	TTL           Optional[uint32] // milliseconds; null: does not expire
	FirstAcquirer bool
	DeliveryCount uint32
}

// DecodeHeader decodes a header section; an absent one (nil) is all defaults.
func DecodeHeader(section []byte) (Header, error) {
	var h Header
	if section == nil {
		return h, nil
	}
	r := NewReader(section)
	f := r.composite(CodeHeader, 5)
	h.Durable = f.bool()
	h.Priority = f.optionalUint8()
	h.TTL = f.optionalUint32()
	h.FirstAcquirer = f.bool()
	h.DeliveryCount = f.uint32()
	f.finish()
	return h, r.err
}

// Append appends the section. The delivery count is always written, also when
// it is 0: the .NET client fails without it.
func (h *Header) Append(b []byte) []byte {
	w := beginComposite(b, CodeHeader)
	w.trueOrNull(h.Durable)
	w.optionalUint8(h.Priority)
	w.optionalUint32(h.TTL)
	w.trueOrNull(h.FirstAcquirer)
	w.uint32(h.DeliveryCount)
	return w.finish()
}
