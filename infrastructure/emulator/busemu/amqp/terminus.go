package amqp

// Source is the node from which a link takes messages (part 3, section 3.5.3).
type Source struct {
	Address               Optional[string]
	Durable               uint32
	ExpiryPolicy          Symbol // "" is session-end
	Timeout               uint32 // seconds
	Dynamic               bool
	DynamicNodeProperties Map
	DistributionMode      Symbol
	Filter                Map
	DefaultOutcome        []byte // encoded; nil: none
	Outcomes              []Symbol
	Capabilities          []Symbol
}

func (s *Source) append(b []byte) []byte {
	w := beginComposite(b, CodeSource)
	w.optionalString(s.Address)
	w.uint32Unless(s.Durable, 0)
	w.symbolOrNull(s.ExpiryPolicy)
	w.uint32Unless(s.Timeout, 0)
	w.trueOrNull(s.Dynamic)
	w.mapOrNull(s.DynamicNodeProperties)
	w.symbolOrNull(s.DistributionMode)
	w.mapOrNull(s.Filter)
	w.rawOrNull(s.DefaultOutcome)
	w.symbolsOrNull(s.Outcomes)
	w.symbolsOrNull(s.Capabilities)
	return w.finish()
}

func decodeSource(r *Reader) *Source {
	f := r.composite(CodeSource, 11)
	var s Source
	s.Address = f.optionalText()
	s.Durable = f.uint32()
	s.ExpiryPolicy = Symbol(f.text())
	s.Timeout = f.uint32()
	s.Dynamic = f.bool()
	s.DynamicNodeProperties = f.mapping()
	s.DistributionMode = Symbol(f.text())
	s.Filter = f.mapping()
	s.DefaultOutcome = f.raw()
	s.Outcomes = f.symbols()
	s.Capabilities = f.symbols()
	f.finish()
	return &s
}

// Target is the node to which a link sends messages (part 3, section 3.5.4).
type Target struct {
	Address               Optional[string]
	Durable               uint32
	ExpiryPolicy          Symbol // "" is session-end
	Timeout               uint32 // seconds
	Dynamic               bool
	DynamicNodeProperties Map
	Capabilities          []Symbol
	// Coordinator marks the target of a transaction controller's link (part 4,
	// section 4.5.1). Its other fields are not decoded.
	Coordinator bool
}

func (t *Target) append(b []byte) []byte {
	if t.Coordinator {
		return append(AppendDescriptor(b, CodeCoordinator), codeList0)
	}
	w := beginComposite(b, CodeTarget)
	w.optionalString(t.Address)
	w.uint32Unless(t.Durable, 0)
	w.symbolOrNull(t.ExpiryPolicy)
	w.uint32Unless(t.Timeout, 0)
	w.trueOrNull(t.Dynamic)
	w.mapOrNull(t.DynamicNodeProperties)
	w.symbolsOrNull(t.Capabilities)
	return w.finish()
}

func decodeTarget(r *Reader) *Target {
	code := r.Descriptor()
	if r.err == nil && code == CodeCoordinator {
		r.Skip()
		return &Target{Coordinator: true}
	}
	if r.err == nil && code != CodeTarget {
		r.fail("target expected, found descriptor 0x%02x", code)
	}
	f := r.beginFields(7)
	var t Target
	t.Address = f.optionalText()
	t.Durable = f.uint32()
	t.ExpiryPolicy = Symbol(f.text())
	t.Timeout = f.uint32()
	t.Dynamic = f.bool()
	t.DynamicNodeProperties = f.mapping()
	t.Capabilities = f.symbols()
	f.finish()
	return &t
}
