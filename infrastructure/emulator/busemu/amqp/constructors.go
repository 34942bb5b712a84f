package amqp

// Constructor bytes of the primitive encodings (AMQP 1.0 part 1, section 1.6).
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeVbin8      = 0xa0
	codeStr8       = 0xa1
	codeSym8       = 0xa3
	codeVbin32     = 0xb0
	codeStr32      = 0xb1
	codeSym32      = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// Descriptor codes of composite types (AMQP 1.0 parts 2, 3 and 5). Each fits a
// smallulong.
const (
	CodeOpen        = 0x10
	CodeBegin       = 0x11
	CodeAttach      = 0x12
	CodeFlow        = 0x13
	CodeTransfer    = 0x14
	CodeDisposition = 0x15
	CodeDetach      = 0x16
	CodeEnd         = 0x17
	CodeClose       = 0x18

	CodeError = 0x1d

	CodeReceived = 0x23
	CodeAccepted = 0x24
	CodeRejected = 0x25
	CodeReleased = 0x26
	CodeModified = 0x27
	CodeSource   = 0x28
	CodeTarget   = 0x29

	CodeCoordinator        = 0x30
	CodeDeclare            = 0x31
	CodeDischarge          = 0x32
	CodeDeclared           = 0x33
	CodeTransactionalState = 0x34

	CodeSASLMechanisms = 0x40
	CodeSASLInit       = 0x41
	CodeSASLChallenge  = 0x42
	CodeSASLResponse   = 0x43
	CodeSASLOutcome    = 0x44

	CodeHeader                = 0x70
	CodeDeliveryAnnotations   = 0x71
	CodeMessageAnnotations    = 0x72
	CodeProperties            = 0x73
	CodeApplicationProperties = 0x74
	CodeData                  = 0x75
	CodeSequence              = 0x76
	CodeValue                 = 0x77
	CodeFooter                = 0x78
)

// Bounds that keep a hostile input from costing more than its own size.
const (
	// MaxDepth is the deepest nesting of lists, maps, arrays and described
	// values that is decoded.
	MaxDepth = 32
	// MaxZeroWidth is how many array elements that take no bytes (null, true,
	// false, uint0, ulong0, list0) one Reader decodes in all.
	MaxZeroWidth = 4096
)
