package amqp

// Skip skips the next value without decoding it. It skips compounds by their size, so that the
// cost does not depend on their contents.
func (r *Reader) Skip() { r.skip(0) }

// Raw returns the bytes of the next value, constructor included, and skips it.
func (r *Reader) Raw() []byte {
	start := r.pos
	r.skip(0)
	if r.err != nil {
		return nil
	}
	return r.b[start:r.pos:r.pos]
}

func (r *Reader) skip(depth int) {
	c := r.byte()
	if r.err != nil {
		return
	}
	if c == codeDescribed {
		if depth >= MaxDepth {
			r.fail("nested deeper than %d", MaxDepth)
			return
		}
		r.skip(depth + 1)
		r.skip(depth + 1)
		return
	}
	// The high nibble of a constructor is the width (part 1, figure 1.3).
	switch c >> 4 {
	case 0x4:
	case 0x5:
		r.take(1)
	case 0x6:
		r.take(2)
	case 0x7:
		r.take(4)
	case 0x8:
		r.take(8)
	case 0x9:
		r.take(16)
	case 0xa, 0xc, 0xe:
		r.take(int(r.byte()))
	case 0xb, 0xd, 0xf:
		r.take(r.size32())
	default:
		r.pos--
		r.fail("unknown constructor 0x%02x", c)
	}
}
