package amqp

// Role is the end of a link that sent a frame (part 2, section 2.8.1). The zero value is the
// sender.
type Role bool

// The two roles.
const (
	RoleSender   Role = false
	RoleReceiver Role = true
)

// Values of snd-settle-mode and rcv-settle-mode (part 2, sections 2.8.2, 2.8.3).
const (
	SenderUnsettled uint8 = 0
	SenderSettled   uint8 = 1
	SenderMixed     uint8 = 2
	ReceiverFirst   uint8 = 0
	ReceiverSecond  uint8 = 1
)

// Attach attaches a link to a session (part 2, section 2.7.3).
type Attach struct {
	Name                 string
	Handle               uint32
	Role                 Role
	SndSettleMode        Optional[uint8] // null: mixed
	RcvSettleMode        Optional[uint8] // null: first
	Source               *Source
	Target               *Target
	Unsettled            Map
	IncompleteUnsettled  bool
	InitialDeliveryCount Optional[uint32]
	MaxMessageSize       uint64 // 0: no limit
	OfferedCapabilities  []Symbol
	DesiredCapabilities  []Symbol
	Properties           Map
}

// Append implements [Performative].
func (p *Attach) Append(b []byte) []byte {
	w := beginComposite(b, CodeAttach)
	w.set(AppendString(w.b, p.Name))
	w.uint32(p.Handle)
	w.bool(bool(p.Role))
	w.optionalUint8(p.SndSettleMode)
	w.optionalUint8(p.RcvSettleMode)
	if p.Source != nil {
		w.set(p.Source.append(w.b))
	} else {
		w.null()
	}
	if p.Target != nil {
		w.set(p.Target.append(w.b))
	} else {
		w.null()
	}
	w.mapOrNull(p.Unsettled)
	w.trueOrNull(p.IncompleteUnsettled)
	w.optionalUint32(p.InitialDeliveryCount)
	w.uint64Unless(p.MaxMessageSize, 0)
	w.symbolsOrNull(p.OfferedCapabilities)
	w.symbolsOrNull(p.DesiredCapabilities)
	w.mapOrNull(p.Properties)
	return w.finish()
}

func (p *Attach) decode(r *Reader) {
	f := r.composite(CodeAttach, 14)
	*p = Attach{}
	if f.required("name") {
		p.Name = f.Text()
	}
	if f.required("handle") {
		p.Handle = f.Uint32()
	}
	if f.required("role") {
		p.Role = Role(f.Bool())
	}
	p.SndSettleMode = f.optionalUint8()
	p.RcvSettleMode = f.optionalUint8()
	if f.present() {
		p.Source = decodeSource(r)
	}
	if f.present() {
		p.Target = decodeTarget(r)
	}
	p.Unsettled = f.mapping()
	p.IncompleteUnsettled = f.bool()
	p.InitialDeliveryCount = f.optionalUint32()
	p.MaxMessageSize = f.uint64()
	p.OfferedCapabilities = f.symbols()
	p.DesiredCapabilities = f.symbols()
	p.Properties = f.mapping()
	f.finish()
}

// Detach detaches a link; with Closed set it is gone for good (part 2, section
// 2.7.7).
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

// Append implements [Performative].
func (p *Detach) Append(b []byte) []byte {
	w := beginComposite(b, CodeDetach)
	w.uint32(p.Handle)
	w.trueOrNull(p.Closed)
	w.errorOrNull(p.Error)
	return w.finish()
}

func (p *Detach) decode(r *Reader) {
	f := r.composite(CodeDetach, 3)
	*p = Detach{}
	if f.required("handle") {
		p.Handle = f.Uint32()
	}
	p.Closed = f.bool()
	p.Error = f.error()
	f.finish()
}

// Flow updates session windows and, with a handle, a link's credit (part 2,
// section 2.7.4).
type Flow struct {
	NextIncomingID Optional[uint32]
	IncomingWindow uint32
	NextOutgoingID uint32
	OutgoingWindow uint32
	Handle         Optional[uint32]
	DeliveryCount  Optional[uint32]
	LinkCredit     Optional[uint32]
	Available      Optional[uint32]
	Drain          bool
	Echo           bool
	Properties     Map
}

// Append implements [Performative].
func (p *Flow) Append(b []byte) []byte {
	w := beginComposite(b, CodeFlow)
	w.optionalUint32(p.NextIncomingID)
	w.uint32(p.IncomingWindow)
	w.uint32(p.NextOutgoingID)
	w.uint32(p.OutgoingWindow)
	w.optionalUint32(p.Handle)
	w.optionalUint32(p.DeliveryCount)
	w.optionalUint32(p.LinkCredit)
	w.optionalUint32(p.Available)
	w.trueOrNull(p.Drain)
	w.trueOrNull(p.Echo)
	w.mapOrNull(p.Properties)
	return w.finish()
}

func (p *Flow) decode(r *Reader) {
	f := r.composite(CodeFlow, 11)
	*p = Flow{}
	p.NextIncomingID = f.optionalUint32()
	if f.required("incoming-window") {
		p.IncomingWindow = f.Uint32()
	}
	if f.required("next-outgoing-id") {
		p.NextOutgoingID = f.Uint32()
	}
	if f.required("outgoing-window") {
		p.OutgoingWindow = f.Uint32()
	}
	p.Handle = f.optionalUint32()
	p.DeliveryCount = f.optionalUint32()
	p.LinkCredit = f.optionalUint32()
	p.Available = f.optionalUint32()
	p.Drain = f.bool()
	p.Echo = f.bool()
	p.Properties = f.mapping()
	f.finish()
}
