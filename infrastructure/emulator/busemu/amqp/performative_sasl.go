package amqp

// SASLMechanisms advertises a server's mechanisms (part 5, section 5.3.3.1).
type SASLMechanisms struct{ Mechanisms []Symbol }

// Append implements [Performative].
func (p *SASLMechanisms) Append(b []byte) []byte {
	w := beginComposite(b, CodeSASLMechanisms)
	w.set(AppendValue(w.b, SymbolArray(p.Mechanisms...)))
	return w.finish()
}

func (p *SASLMechanisms) decode(r *Reader) {
	f := r.composite(CodeSASLMechanisms, 1)
	p.Mechanisms = f.symbols()
	f.finish()
}

// SASLInit chooses a mechanism (part 5, section 5.3.3.2).
type SASLInit struct {
	Mechanism       Symbol
	InitialResponse []byte
	Hostname        string
}

// Append implements [Performative].
func (p *SASLInit) Append(b []byte) []byte {
	w := beginComposite(b, CodeSASLInit)
	w.set(AppendSymbol(w.b, p.Mechanism))
	w.binaryOrNull(p.InitialResponse)
	w.stringOrNull(p.Hostname)
	return w.finish()
}

func (p *SASLInit) decode(r *Reader) {
	f := r.composite(CodeSASLInit, 3)
	*p = SASLInit{}
	if f.required("mechanism") {
		p.Mechanism = Symbol(f.Text())
	}
	p.InitialResponse = f.binary()
	p.Hostname = f.text()
	f.finish()
}

// SASLChallenge carries a server's challenge (part 5, section 5.3.3.3).
type SASLChallenge struct{ Challenge []byte }

// Append implements [Performative].
func (p *SASLChallenge) Append(b []byte) []byte {
	w := beginComposite(b, CodeSASLChallenge)
	w.set(AppendBinary(w.b, p.Challenge))
	return w.finish()
}

func (p *SASLChallenge) decode(r *Reader) {
	f := r.composite(CodeSASLChallenge, 1)
	p.Challenge = f.binary()
	f.finish()
}

// SASLResponse answers a challenge (part 5, section 5.3.3.4).
type SASLResponse struct{ Response []byte }

// Append implements [Performative].
func (p *SASLResponse) Append(b []byte) []byte {
	w := beginComposite(b, CodeSASLResponse)
	w.set(AppendBinary(w.b, p.Response))
	return w.finish()
}

func (p *SASLResponse) decode(r *Reader) {
	f := r.composite(CodeSASLResponse, 1)
	p.Response = f.binary()
	f.finish()
}

// SASLCode is the result of an authentication (part 5, section 5.3.3.6).
type SASLCode uint8

// The codes that a server uses here.
const (
	SASLOK   SASLCode = 0
	SASLAuth SASLCode = 1 // wrong credentials
	SASLSys  SASLCode = 2
)

// SASLOutcome ends the SASL dialogue (part 5, section 5.3.3.5).
type SASLOutcome struct {
	Code           SASLCode
	AdditionalData []byte
}

// Append implements [Performative].
func (p *SASLOutcome) Append(b []byte) []byte {
	w := beginComposite(b, CodeSASLOutcome)
	w.set(AppendUint8(w.b, uint8(p.Code)))
	w.binaryOrNull(p.AdditionalData)
	return w.finish()
}

func (p *SASLOutcome) decode(r *Reader) {
	f := r.composite(CodeSASLOutcome, 2)
	*p = SASLOutcome{}
	if f.required("code") {
		p.Code = SASLCode(f.Uint8())
	}
	p.AdditionalData = f.binary()
	f.finish()
}
