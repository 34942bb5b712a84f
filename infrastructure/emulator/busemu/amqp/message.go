package amqp

// Message is a message cut into its sections (part 3, section 3.2). Each field
// holds the bytes of the wire, descriptor included, and is nil when the section
// is absent; Body holds all body sections one after the other.
type Message struct {
	Header                []byte
	DeliveryAnnotations   []byte
	MessageAnnotations    []byte
	Properties            []byte
	ApplicationProperties []byte
	Body                  []byte
	Footer                []byte
}

// BatchFormat is the message-format of a Service Bus batch: a message whose
// data sections are encoded messages (azservicebus message_batch.go).
const BatchFormat = 0x80013700

// afterFooter is above the code of every section.
const afterFooter = CodeFooter + 1

// SplitMessage splits b into sections, which alias it. Sections that are out of order,
// repeated, unknown or of the wrong type are an error. The delivery-annotations may come last,
// because the service accepts that and the Python SDK sends it. The contents of a section are
// measured, not decoded.
func SplitMessage(b []byte) (Message, error) {
	var m Message
	r := NewReader(b)
	last := uint64(0)
	body := -1 // start of the first body section
	for r.err == nil && r.pos < len(b) {
		start := r.pos
		code := r.Descriptor()
		if code == CodeDeliveryAnnotations && last > code && m.DeliveryAnnotations == nil {
			last = afterFooter // nothing may follow
		} else if r.err == nil && (code < last || code == last && (code < CodeData || code > CodeSequence)) {
			r.fail("section 0x%02x after 0x%02x", code, last)
		}
		last = max(last, code)
		c := r.peek()
		r.Skip()
		if r.err != nil {
			break
		}
		section := b[start:r.pos:r.pos]
		switch code {
		case CodeHeader:
			m.Header = section
			r.want(c, codeList0, codeList8, codeList32)
		case CodeDeliveryAnnotations:
			m.DeliveryAnnotations = section
			r.want(c, codeMap8, codeMap32)
		case CodeMessageAnnotations:
			m.MessageAnnotations = section
			r.want(c, codeMap8, codeMap32)
		case CodeProperties:
			m.Properties = section
			r.want(c, codeList0, codeList8, codeList32)
		case CodeApplicationProperties:
			m.ApplicationProperties = section
			r.want(c, codeMap8, codeMap32)
		case CodeData:
			if body < 0 {
				body = start
			}
			m.Body = b[body:r.pos:r.pos]
			r.want(c, codeVbin8, codeVbin32)
		case CodeSequence:
			if body < 0 {
				body = start
			}
			m.Body = b[body:r.pos:r.pos]
			r.want(c, codeList0, codeList8, codeList32)
		case CodeValue:
			if body < 0 {
				body = start
			}
			m.Body = b[body:r.pos:r.pos]
		case CodeFooter:
			m.Footer = section
			r.want(c, codeMap8, codeMap32)
		default:
			r.fail("unknown section 0x%02x", code)
		}
	}
	if r.err != nil {
		return Message{}, r.err
	}
	return m, nil
}

// want fails unless a section's value has one of these constructors.
func (r *Reader) want(c byte, allowed ...byte) {
	for _, a := range allowed {
		if c == a {
			return
		}
	}
	r.fail("section value of constructor 0x%02x", c)
}

// Append appends the sections in their order.
func (m *Message) Append(b []byte) []byte {
	b = append(b, m.Header...)
	b = append(b, m.DeliveryAnnotations...)
	b = append(b, m.MessageAnnotations...)
	b = append(b, m.Properties...)
	b = append(b, m.ApplicationProperties...)
	b = append(b, m.Body...)
	return append(b, m.Footer...)
}

// Data returns the contents of the body's data sections, which alias it. A body of another
// kind is an error.
func (m *Message) Data() ([][]byte, error) {
	r := NewReader(m.Body)
	var out [][]byte
	for r.err == nil && r.pos < len(m.Body) {
		if code := r.Descriptor(); r.err == nil && code != CodeData {
			r.fail("data section expected, found 0x%02x", code)
		}
		out = append(out, r.Binary())
	}
	return out, r.err
}

// Value decodes the body's amqp-value section; nil when there is none.
func (m *Message) Value() (any, error) {
	if len(m.Body) == 0 {
		return nil, nil
	}
	r := NewReader(m.Body)
	if code := r.Descriptor(); r.err == nil && code != CodeValue {
		r.fail("amqp-value section expected, found 0x%02x", code)
	}
	v := r.Value()
	return v, r.err
}

// AppendData appends a data section.
func AppendData(b, data []byte) []byte { return AppendBinary(AppendDescriptor(b, CodeData), data) }

// AppendValueSection appends an amqp-value section.
func AppendValueSection(b []byte, v any) []byte {
	return AppendValue(AppendDescriptor(b, CodeValue), v)
}
