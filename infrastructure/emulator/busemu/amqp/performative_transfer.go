package amqp

// Transfer carries a message or a part of one; its payload follows it in the
// frame (part 2, section 2.7.5).
type Transfer struct {
	Handle        uint32
	DeliveryID    Optional[uint32] // set on the first frame of a delivery
	DeliveryTag   []byte           // likewise; up to 32 bytes
	MessageFormat Optional[uint32]
	Settled       bool
	More          bool
	RcvSettleMode Optional[uint8]
	State         []byte // delivery state, encoded; nil: none
	Resume        bool
	Aborted       bool
	Batchable     bool
}

// Append implements [Performative]; the caller appends the payload.
func (p *Transfer) Append(b []byte) []byte {
	w := beginComposite(b, CodeTransfer)
	w.uint32(p.Handle)
	w.optionalUint32(p.DeliveryID)
	w.binaryOrNull(p.DeliveryTag)
	w.optionalUint32(p.MessageFormat)
	w.trueOrNull(p.Settled)
	w.trueOrNull(p.More)
	w.optionalUint8(p.RcvSettleMode)
	w.rawOrNull(p.State)
	w.trueOrNull(p.Resume)
	w.trueOrNull(p.Aborted)
	w.trueOrNull(p.Batchable)
	return w.finish()
}

func (p *Transfer) decode(r *Reader) {
	f := r.composite(CodeTransfer, 11)
	*p = Transfer{}
	if f.required("handle") {
		p.Handle = f.Uint32()
	}
	p.DeliveryID = f.optionalUint32()
	p.DeliveryTag = f.binary()
	p.MessageFormat = f.optionalUint32()
	p.Settled = f.bool()
	p.More = f.bool()
	p.RcvSettleMode = f.optionalUint8()
	p.State = f.raw()
	p.Resume = f.bool()
	p.Aborted = f.bool()
	p.Batchable = f.bool()
	f.finish()
	if r.err == nil && len(p.DeliveryTag) > 32 {
		r.fail("delivery-tag of %d bytes", len(p.DeliveryTag))
	}
}

// Disposition reports the state of the deliveries First to Last (part 2, section 2.7.6).
type Disposition struct {
	Role      Role
	First     uint32
	Last      Optional[uint32] // null: First
	Settled   bool
	State     []byte // delivery state, encoded; nil: none
	Batchable bool
}

// Append implements [Performative].
func (p *Disposition) Append(b []byte) []byte {
	w := beginComposite(b, CodeDisposition)
	w.bool(bool(p.Role))
	w.uint32(p.First)
	w.optionalUint32(p.Last)
	w.trueOrNull(p.Settled)
	w.rawOrNull(p.State)
	w.trueOrNull(p.Batchable)
	return w.finish()
}

func (p *Disposition) decode(r *Reader) {
	f := r.composite(CodeDisposition, 6)
	*p = Disposition{}
	if f.required("role") {
		p.Role = Role(f.Bool())
	}
	if f.required("first") {
		p.First = f.Uint32()
	}
	p.Last = f.optionalUint32()
	p.Settled = f.bool()
	p.State = f.raw()
	p.Batchable = f.bool()
	f.finish()
}
