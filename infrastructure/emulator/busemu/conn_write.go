package busemu

// writeLoop is the writer goroutine. It writes the loop's output and returns the buffers.
// After an error it returns buffers unwritten; the closed socket ends the reader, and the
// reader ends the loop.
func (c *conn) writeLoop() {
	defer close(c.written)
	failed := false
	for buf := range c.toWrite {
		if !failed {
			if _, err := c.nc.Write(buf); err != nil {
				failed = true
				c.log.Debug("connection write failed", "error", err)
				_ = c.nc.Close()
			}
		}
		if cap(buf) > writeBufferMax {
			buf = make([]byte, 0, readBufferMin)
		}
		c.written <- buf
	}
}

// writeBufferMax is the largest buffer kept between writes.
const writeBufferMax = 256 << 10
