package amqp

import "math"

// Value reads the next value of any type. Binary values alias the input.
func (r *Reader) Value() any { return r.value(0) }

// DecodeValue decodes the single value in b.
func DecodeValue(b []byte) (any, error) {
	r := NewReader(b)
	v := r.Value()
	if r.err == nil && r.pos != len(b) {
		r.fail("%d bytes follow the value", len(b)-r.pos)
	}
	return v, r.err
}

func (r *Reader) value(depth int) any {
	c := r.byte()
	if r.err != nil {
		return nil
	}
	if c == codeDescribed {
		if depth >= MaxDepth {
			r.fail("nested deeper than %d", MaxDepth)
			return nil
		}
		d := r.value(depth + 1)
		return Described{Descriptor: d, Value: r.value(depth + 1)}
	}
	return r.body(c, depth)
}

// body reads the part after the constructor byte c.
func (r *Reader) body(c byte, depth int) any {
	switch c {
	case codeNull:
		return nil
	case codeTrue:
		return true
	case codeFalse:
		return false
	case codeBool:
		return r.boolByte()
	case codeUint0:
		return uint32(0)
	case codeUlong0:
		return uint64(0)
	case codeUbyte:
		return r.byte()
	case codeByte:
		return int8(r.byte())
	case codeSmallUint:
		return uint32(r.byte())
	case codeSmallUlong:
		return uint64(r.byte())
	case codeSmallInt:
		return int32(int8(r.byte()))
	case codeSmallLong:
		return int64(int8(r.byte()))
	case codeUshort:
		return r.uint16()
	case codeShort:
		return int16(r.uint16())
	case codeUint:
		return r.uint32()
	case codeInt:
		return int32(r.uint32())
	case codeFloat:
		return math.Float32frombits(r.uint32())
	case codeChar:
		return Char(r.uint32())
	case codeUlong:
		return r.uint64()
	case codeLong:
		return int64(r.uint64())
	case codeDouble:
		return math.Float64frombits(r.uint64())
	case codeTimestamp:
		return Timestamp(r.uint64())
	case codeDecimal32:
		var d Decimal32
		copy(d[:], r.take(len(d)))
		return d
	case codeDecimal64:
		var d Decimal64
		copy(d[:], r.take(len(d)))
		return d
	case codeDecimal128:
		var d Decimal128
		copy(d[:], r.take(len(d)))
		return d
	case codeUUID:
		var u UUID
		copy(u[:], r.take(len(u)))
		return u
	case codeVbin8:
		return r.take(int(r.byte()))
	case codeVbin32:
		return r.take(r.size32())
	case codeStr8:
		return string(r.take(int(r.byte())))
	case codeStr32:
		return string(r.take(r.size32()))
	case codeSym8:
		return Symbol(r.take(int(r.byte())))
	case codeSym32:
		return Symbol(r.take(r.size32()))
	case codeList0:
		return List{}
	case codeList8, codeList32:
		return r.list(c, depth)
	case codeMap8, codeMap32:
		return r.mapping(c, depth)
	case codeArray8, codeArray32:
		return r.array(c, depth)
	default:
		r.pos--
		r.fail("unknown constructor 0x%02x", c)
		return nil
	}
}

func (r *Reader) list(c byte, depth int) any {
	count, end := r.compound(c, codeList8, codeList32)
	if !r.enter(depth) {
		return nil
	}
	l := make(List, 0, min(count, 64))
	for range count {
		l = append(l, r.value(depth+1))
		if r.err != nil || r.pos > end {
			break
		}
	}
	r.leave(end)
	return l
}

func (r *Reader) mapping(c byte, depth int) any {
	count, end := r.compound(c, codeMap8, codeMap32)
	if !r.enter(depth) {
		return nil
	}
	if count%2 != 0 {
		r.fail("map with %d keys and values", count)
		return nil
	}
	m := make(Map, 0, min(count/2, 32))
	for range count / 2 {
		k := r.value(depth + 1)
		m = append(m, MapEntry{Key: k, Value: r.value(depth + 1)})
		if r.err != nil || r.pos > end {
			break
		}
	}
	r.leave(end)
	return m
}

// array reads size, count and the one constructor, then the bare elements
// (part 1, section 1.6.24).
func (r *Reader) array(c byte, depth int) any {
	var size, count, end int
	if c == codeArray8 {
		size = int(r.byte())
		end = r.pos + size
		count = int(r.byte())
	} else {
		size = r.size32()
		end = r.pos + size
		count = r.size32()
	}
	if !r.enter(depth) {
		return nil
	}
	if end > len(r.b) {
		r.fail("array size %d exceeds the %d bytes left", size, len(r.b)-r.pos)
		return nil
	}
	var a Array
	a.Type = r.byte()
	if a.Type == codeDescribed && r.err == nil {
		a.Descriptor = r.value(depth + 1)
		if a.Descriptor == nil {
			r.fail("array element with a null descriptor")
		}
		a.Type = r.byte()
	}
	if r.err != nil {
		return nil
	}
	if a.Type == codeDescribed {
		r.fail("array of doubly described elements")
		return nil
	}
	if zeroWidth(a.Type) {
		if r.zeroes += count; r.zeroes > MaxZeroWidth {
			r.fail("more than %d array elements without bytes", MaxZeroWidth)
			return nil
		}
	} else if count > end-r.pos {
		r.fail("%d array elements cannot fit %d bytes", count, end-r.pos)
		return nil
	}
	a.Elems = make([]any, 0, min(count, 64))
	for range count {
		a.Elems = append(a.Elems, r.body(a.Type, depth+1))
		if r.err != nil || r.pos > end {
			break
		}
	}
	r.leave(end)
	a.Type = canonicalArrayType(a)
	return a
}

func (r *Reader) enter(depth int) bool {
	if r.err == nil && depth >= MaxDepth {
		r.fail("nested deeper than %d", MaxDepth)
	}
	return r.err == nil
}

// leave checks that the elements filled their compound exactly.
func (r *Reader) leave(end int) {
	if r.err == nil && r.pos != end {
		r.fail("elements end %d bytes off their compound's size", r.pos-end)
	}
}

func zeroWidth(c byte) bool {
	switch c {
	case codeNull, codeTrue, codeFalse, codeUint0, codeUlong0, codeList0:
		return true
	}
	return false
}
