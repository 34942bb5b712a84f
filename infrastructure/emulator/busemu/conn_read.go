package busemu

import (
	"errors"
	"fmt"
	"io"
	"net"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// chunk is a run of whole frames, or the reason why no more follow.
type chunk struct {
	frames []byte
	err    error // a framing error; nil at the end of the stream
}

const readBufferMin = 4096

// frameReader reads a connection into a buffer. The buffer grows with the peer's bursts, up to
// one frame of the largest size.
type frameReader struct {
	nc  net.Conn
	buf []byte
	n   int // bytes in buf
}

func newFrameReader(nc net.Conn) *frameReader {
	return &frameReader{nc: nc, buf: make([]byte, readBufferMin)}
}

// need reads until the buffer has n bytes and returns them; discard removes them.
func (f *frameReader) need(n int) ([]byte, error) {
	for f.n < n {
		if len(f.buf) < n {
			f.grow(n)
		}
		m, err := f.nc.Read(f.buf[f.n:])
		f.n += m
		if err != nil && f.n < n {
			return nil, err
		}
	}
	return f.buf[:n], nil
}

func (f *frameReader) discard(n int) {
	copy(f.buf, f.buf[n:f.n])
	f.n -= n
}

func (f *frameReader) grow(n int) {
	bigger := make([]byte, max(n, min(2*len(f.buf), maxFrameSize)))
	copy(bigger, f.buf[:f.n])
	f.buf = bigger
}

// whole returns the length of the complete frames in b and the size of the frame after them.
func whole(b []byte) (n, next int, err error) {
	for {
		if len(b)-n < amqp.FrameHeaderSize {
			return n, amqp.FrameHeaderSize, nil
		}
		h, err := amqp.ParseFrameHeader(b[n:])
		if err != nil {
			return n, 0, err
		}
		if h.Size > maxFrameSize {
			return n, 0, fmt.Errorf("frame of %d bytes exceeds the max-frame-size of %d", h.Size, maxFrameSize)
		}
		if int(h.Size) > len(b)-n {
			return n, int(h.Size), nil
		}
		n += int(h.Size)
	}
}

// readLoop is the reader goroutine. It holds at most two buffers: one being
// filled, one being handled.
func (c *conn) readLoop(f *frameReader) {
	defer close(c.chunks)
	for {
		n, next, err := whole(f.buf[:f.n])
		if n > 0 {
			full := f.buf[:n]
			rest := f.buf[n:f.n]
			var other []byte
			select {
			case other = <-c.recycle:
			default:
			}
			if len(other) < max(len(f.buf), next) {
				other = make([]byte, max(len(f.buf), next))
			}
			f.n = copy(other, rest)
			f.buf = other
			c.chunks <- chunk{frames: full}
		}
		if err != nil {
			c.chunks <- chunk{err: err}
			return
		}
		if len(f.buf) < next || f.n == len(f.buf) {
			f.grow(next)
		}
		m, err := f.nc.Read(f.buf[f.n:])
		f.n += m
		if f.n == len(f.buf) && len(f.buf) < maxFrameSize {
			f.grow(2 * len(f.buf)) // the peer has more to send than fits
		}
		if err != nil && m == 0 {
			if !errors.Is(err, io.EOF) {
				c.log.Debug("connection read failed", "error", err)
			}
			return
		}
	}
}

func (c *conn) handleChunk(ch chunk) {
	if ch.err != nil {
		c.fail(condFramingError, ch.err.Error())
		return
	}
	b := ch.frames
	for len(b) > 0 && !c.done {
		h, err := amqp.ParseFrameHeader(b)
		if err != nil { // not reached, because the reader has checked the frame
			c.fail(condFramingError, err.Error())
			return
		}
		frame := b[:h.Size]
		b = b[h.Size:]
		if body := frame[int(h.Doff)*4:]; len(body) > 0 {
			c.handleFrame(h, body)
		}
	}
	select {
	case c.recycle <- ch.frames[:cap(ch.frames)]:
	default:
	}
}
