package amqp

// Open is sent once by each side and negotiates the connection (part 2,
// section 2.7.1).
type Open struct {
	ContainerID         string // mandatory
	Hostname            string
	MaxFrameSize        uint32 // 0 on the wire means the default, 4294967295
	ChannelMax          uint16 // default 65535
	IdleTimeout         uint32 // milliseconds; 0: none
	OutgoingLocales     []Symbol
	IncomingLocales     []Symbol
	OfferedCapabilities []Symbol
	DesiredCapabilities []Symbol
	Properties          Map
}

const (
	defaultMaxFrameSize = 1<<32 - 1
	defaultChannelMax   = 1<<16 - 1
	defaultHandleMax    = 1<<32 - 1
)

// Append implements [Performative].
func (o *Open) Append(b []byte) []byte {
	w := beginComposite(b, CodeOpen)
	w.set(AppendString(w.b, o.ContainerID))
	w.stringOrNull(o.Hostname)
	w.uint32Unless(o.MaxFrameSize, defaultMaxFrameSize)
	if o.ChannelMax == defaultChannelMax {
		w.null()
	} else {
		w.set(AppendUint16(w.b, o.ChannelMax))
	}
	w.uint32Unless(o.IdleTimeout, 0)
	w.symbolsOrNull(o.OutgoingLocales)
	w.symbolsOrNull(o.IncomingLocales)
	w.symbolsOrNull(o.OfferedCapabilities)
	w.symbolsOrNull(o.DesiredCapabilities)
	w.mapOrNull(o.Properties)
	return w.finish()
}

func (o *Open) decode(r *Reader) {
	f := r.composite(CodeOpen, 10)
	*o = Open{MaxFrameSize: defaultMaxFrameSize, ChannelMax: defaultChannelMax}
	if f.required("container-id") {
		o.ContainerID = f.Text()
	}
	o.Hostname = f.text()
	if f.present() {
		o.MaxFrameSize = f.Uint32()
	}
	if f.present() {
		o.ChannelMax = f.Uint16()
	}
	o.IdleTimeout = f.uint32()
	o.OutgoingLocales = f.symbols()
	o.IncomingLocales = f.symbols()
	o.OfferedCapabilities = f.symbols()
	o.DesiredCapabilities = f.symbols()
	o.Properties = f.mapping()
	f.finish()
}

// Close ends the connection (part 2, section 2.7.9).
type Close struct{ Error *Error }

// Append implements [Performative].
func (c *Close) Append(b []byte) []byte { return appendErrorOnly(b, CodeClose, c.Error) }

func (c *Close) decode(r *Reader) { c.Error = decodeErrorOnly(r, CodeClose) }

func appendErrorOnly(b []byte, code byte, e *Error) []byte {
	w := beginComposite(b, code)
	w.errorOrNull(e)
	return w.finish()
}

func decodeErrorOnly(r *Reader, code uint64) *Error {
	f := r.composite(code, 1)
	e := f.error()
	f.finish()
	return e
}
