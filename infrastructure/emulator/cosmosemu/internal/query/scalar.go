package query

import "math"

type (
	// constant does not depend on the document.
	constant struct{ v Value }
	// pathNodeRef is a slot of the walk, and the steps that the walk does not cover.
	pathNodeRef struct {
		slot int
		rest []step
	}
	// lookup is base[index].
	lookup struct{ base, index scalar }
	// unaryNode is - + or ~.
	unaryNode struct {
		op string
		x  scalar
	}
	// binaryNode is an operator other than a comparison.
	binaryNode struct {
		op   string
		x, y scalar
	}
	// choice is cond ? then : other. A condition that is not true selects other.
	choice struct {
		cond        cond
		then, other scalar
	}
	// callNode is a function call; values is scratch space for the arguments.
	callNode struct {
		fn     *function
		args   []scalar
		values []Value
	}
	// arrayNode and objectNode construct a value without undefined parts.
	arrayNode  struct{ items []scalar }
	objectNode struct {
		keys   [][]byte // with quotes
		values []scalar
	}
	// truth converts a condition to a value.
	truth struct{ cond }
)

func (n constant) eval(*env) Value { return n.v }

func (n pathNodeRef) eval(e *env) Value {
	v := e.slots[n.slot]
	for _, s := range n.rest {
		v = v.find(s)
	}
	return v
}

func (n lookup) eval(e *env) Value {
	base, index := n.base.eval(e), n.index.eval(e)
	s, ok := stepOf(index)
	if !ok {
		return Value{}
	}
	return base.find(s)
}

func (n unaryNode) eval(e *env) Value {
	v := n.x.eval(e)
	if v.kind != Number {
		return Value{}
	}
	switch n.op {
	case "-":
		return floatValue(-v.Float())
	case "~":
		return floatValue(float64(^int32Of(v.Float())))
	}
	return v
}

func (n binaryNode) eval(e *env) Value {
	a := n.x.eval(e)
	if n.op == "??" {
		if a.kind != Undefined {
			return a
		}
		return n.y.eval(e)
	}
	b := n.y.eval(e)
	if n.op == "||" {
		if a.kind != String || b.kind != String {
			return Value{}
		}
		return concat([]Value{a, b})
	}
	if a.kind != Number || b.kind != Number {
		return Value{}
	}
	return floatValue(arithmetic(n.op, a.Float(), b.Float()))
}

func arithmetic(op string, x, y float64) float64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "%":
		return math.Mod(x, y)
	case "&":
		return float64(int32Of(x) & int32Of(y))
	case "|":
		return float64(int32Of(x) | int32Of(y))
	case "^":
		return float64(int32Of(x) ^ int32Of(y))
	case "<<":
		return float64(int32Of(x) << (int32Of(y) & 31))
	case ">>":
		return float64(int32Of(x) >> (int32Of(y) & 31))
	case ">>>":
		return float64(uint32(int32Of(x)) >> (int32Of(y) & 31)) //nolint:gosec // zeros are shifted in
	}
	return math.NaN()
}

// int32Of returns the 32 low bits of the whole part, as bit operators do in JavaScript and in
// the service.
func int32Of(f float64) int32 {
	if f-f != 0 {
		return 0
	}
	f = math.Mod(math.Trunc(f), 1<<32)
	return int32(uint32(int64(f))) //nolint:gosec // dropping the high bits is intended
}

func (n choice) eval(e *env) Value {
	if n.cond.test(e) == yes {
		return n.then.eval(e)
	}
	return n.other.eval(e)
}

func (n *callNode) eval(e *env) Value {
	size := 0
	for i, a := range n.args {
		v := a.eval(e)
		size += len(v.raw)
		if v.kind == Undefined && !n.fn.lenient || size > maxValue {
			return Value{}
		}
		n.values[i] = v
	}
	return n.fn.apply(n.values)
}

func (n arrayNode) eval(e *env) Value {
	raw, ok := appendItems(nil, n.items, e)
	if !ok {
		return Value{}
	}
	return Value{kind: Array, raw: raw}
}

func (n objectNode) eval(e *env) Value {
	raw, ok := appendMembers(nil, n.keys, n.values, e)
	if !ok {
		return Value{}
	}
	return Value{kind: Object, raw: raw}
}

func (n truth) eval(e *env) Value {
	switch n.test(e) {
	case yes:
		return boolValue(true)
	case no:
		return boolValue(false)
	default:
		return Value{}
	}
}

// maxValue limits a computed value, in bytes. Without a limit a query that repeats a long
// parameter could use all memory. A longer value is undefined.
const maxValue = 16 << 20

// appendScalar appends the value of s as JSON, without building constructed values twice. If
// the value is undefined, ok is false and out must not be used.
func appendScalar(dst []byte, s scalar, e *env) (out []byte, ok bool) {
	switch n := s.(type) {
	case arrayNode:
		return appendItems(dst, n.items, e)
	case objectNode:
		return appendMembers(dst, n.keys, n.values, e)
	}
	v := s.eval(e)
	return v.AppendJSON(dst), v.kind != Undefined
}

func appendItems(dst []byte, items []scalar, e *env) (out []byte, ok bool) {
	base := len(dst)
	dst = append(dst, '[')
	for _, x := range items {
		mark := len(dst)
		if mark > base+1 {
			dst = append(dst, ',')
		}
		if dst, ok = appendScalar(dst, x, e); !ok {
			dst = dst[:mark]
		}
		if len(dst)-base > maxValue {
			return dst[:base], false
		}
	}
	return append(dst, ']'), true
}

func appendMembers(dst []byte, keys [][]byte, values []scalar, e *env) (out []byte, ok bool) {
	base := len(dst)
	dst = append(dst, '{')
	for i, x := range values {
		mark := len(dst)
		if mark > base+1 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, keys[i]...), ':')
		if dst, ok = appendScalar(dst, x, e); !ok {
			dst = dst[:mark]
		}
		if len(dst)-base > maxValue {
			return dst[:base], false
		}
	}
	return append(dst, '}'), true
}
