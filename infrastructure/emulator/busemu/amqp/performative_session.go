package amqp

// Begin opens a session on a channel (part 2, section 2.7.2).
type Begin struct {
	RemoteChannel       Optional[uint16] // set when answering a Begin
	NextOutgoingID      uint32
	IncomingWindow      uint32
	OutgoingWindow      uint32
	HandleMax           uint32 // default 4294967295
	OfferedCapabilities []Symbol
	DesiredCapabilities []Symbol
	Properties          Map
}

// Append implements [Performative].
func (p *Begin) Append(b []byte) []byte {
	w := beginComposite(b, CodeBegin)
	if p.RemoteChannel.Set {
		w.set(AppendUint16(w.b, p.RemoteChannel.Value))
	} else {
		w.null()
	}
	w.uint32(p.NextOutgoingID)
	w.uint32(p.IncomingWindow)
	w.uint32(p.OutgoingWindow)
	w.uint32Unless(p.HandleMax, defaultHandleMax)
	w.symbolsOrNull(p.OfferedCapabilities)
	w.symbolsOrNull(p.DesiredCapabilities)
	w.mapOrNull(p.Properties)
	return w.finish()
}

func (p *Begin) decode(r *Reader) {
	f := r.composite(CodeBegin, 8)
	*p = Begin{HandleMax: defaultHandleMax}
	if f.present() {
		p.RemoteChannel = Some(f.Uint16())
	}
	if f.required("next-outgoing-id") {
		p.NextOutgoingID = f.Uint32()
	}
	if f.required("incoming-window") {
		p.IncomingWindow = f.Uint32()
	}
	if f.required("outgoing-window") {
		p.OutgoingWindow = f.Uint32()
	}
	if f.present() {
		p.HandleMax = f.Uint32()
	}
	p.OfferedCapabilities = f.symbols()
	p.DesiredCapabilities = f.symbols()
	p.Properties = f.mapping()
	f.finish()
}

// End closes a session (part 2, section 2.7.8).
type End struct{ Error *Error }

// Append implements [Performative].
func (p *End) Append(b []byte) []byte { return appendErrorOnly(b, CodeEnd, p.Error) }

func (p *End) decode(r *Reader) { p.Error = decodeErrorOnly(r, CodeEnd) }
