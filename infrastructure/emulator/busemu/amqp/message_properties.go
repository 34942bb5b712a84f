package amqp

// Property is the position of a field in the properties section (part 3,
// section 3.2.4).
type Property int

// The fields of the properties section, in their order.
const (
	MessageID Property = iota
	UserID
	To
	Subject
	ReplyTo
	CorrelationID
	ContentType
	ContentEncoding
	AbsoluteExpiryTime
	CreationTime
	GroupID
	GroupSequence
	ReplyToGroupID
	propertyCount
)

// Properties holds the fields of a properties section, each as its encoding;
// nil is null.
type Properties [propertyCount][]byte

// DecodeProperties splits a properties section into its fields, which alias it. An absent
// section (nil) has no field set.
func DecodeProperties(section []byte) (Properties, error) {
	var p Properties
	if section == nil {
		return p, nil
	}
	r := NewReader(section)
	f := r.composite(CodeProperties, int(propertyCount))
	for i := range p {
		p[i] = f.raw()
	}
	f.finish()
	return p, r.err
}

// Append appends the section.
func (p *Properties) Append(b []byte) []byte {
	w := beginComposite(b, CodeProperties)
	for _, v := range p {
		w.rawOrNull(v)
	}
	return w.finish()
}

// Text returns the text of a string or symbol field; false when it is null or
// of another type.
func (p *Properties) Text(i Property) (string, bool) {
	if p[i] == nil {
		return "", false
	}
	r := NewReader(p[i])
	s := r.Text()
	return s, r.err == nil
}

// Value decodes a field of any type; nil when it is null.
func (p *Properties) Value(i Property) (any, error) {
	if p[i] == nil {
		return nil, nil
	}
	return DecodeValue(p[i])
}

// SetText sets a field to a string.
func (p *Properties) SetText(i Property, s string) { p[i] = AppendString(nil, s) }
