package amqp

// symbolicDescriptors has the names of the composite types and sections. The protocol allows a
// name instead of the code (part 1, section 1.3; Qpid Proton uses the names of declare and
// discharge).
var symbolicDescriptors = map[string]uint64{
	"amqp:open:list": CodeOpen, "amqp:begin:list": CodeBegin, "amqp:attach:list": CodeAttach, "amqp:flow:list": CodeFlow,
	"amqp:transfer:list": CodeTransfer, "amqp:disposition:list": CodeDisposition, "amqp:detach:list": CodeDetach,
	"amqp:end:list": CodeEnd, "amqp:close:list": CodeClose, "amqp:error:list": CodeError,

	"amqp:received:list": CodeReceived, "amqp:accepted:list": CodeAccepted, "amqp:rejected:list": CodeRejected,
	"amqp:released:list": CodeReleased, "amqp:modified:list": CodeModified, "amqp:source:list": CodeSource, "amqp:target:list": CodeTarget,

	"amqp:coordinator:list": CodeCoordinator, "amqp:declare:list": CodeDeclare, "amqp:discharge:list": CodeDischarge,
	"amqp:declared:list": CodeDeclared, "amqp:transactional-state:list": CodeTransactionalState,

	"amqp:sasl-mechanisms:list": CodeSASLMechanisms, "amqp:sasl-init:list": CodeSASLInit, "amqp:sasl-challenge:list": CodeSASLChallenge,
	"amqp:sasl-response:list": CodeSASLResponse, "amqp:sasl-outcome:list": CodeSASLOutcome,

	"amqp:header:list": CodeHeader, "amqp:delivery-annotations:map": CodeDeliveryAnnotations,
	"amqp:message-annotations:map": CodeMessageAnnotations, "amqp:properties:list": CodeProperties,
	"amqp:application-properties:map": CodeApplicationProperties, "amqp:data:binary": CodeData,
	"amqp:amqp-sequence:list": CodeSequence, "amqp:amqp-value:*": CodeValue, "amqp:footer:map": CodeFooter,
}

// Descriptor consumes the start of a described value and returns its descriptor: the number,
// or the number of its name. An unknown name is an error.
func (r *Reader) Descriptor() uint64 {
	if c := r.byte(); c != codeDescribed {
		r.fail("described value expected, found constructor 0x%02x", c)
		return 0
	}
	if r.err != nil || r.pos >= len(r.b) || r.b[r.pos] != codeSym8 && r.b[r.pos] != codeSym32 {
		return r.Uint64()
	}
	name := r.Text()
	code, ok := symbolicDescriptors[name]
	if !ok {
		r.fail("unknown descriptor %q", name)
	}
	return code
}
