package rabbitmq

import (
	"net"
	"sync"
	"time"
)

// socket is a connection whose writes have a limit. What publishers write in a burst goes out
// in few pieces, where the client would make a system call for each message.
type socket struct {
	net.Conn
	ending sync.Once

	mu     sync.Mutex // guards what follows, and orders the writes
	bursts int        // under way
	held   []byte     // waits for the end of one
}

// heldMost bounds what is held.
const heldMost = 64 << 10

// Write implements net.Conn.
func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, b...)
	if s.bursts > 0 && len(s.held) < heldMost {
		return len(b), nil
	}
	return len(b), s.flush()
}

// burst has what is written held until the function that it returns is called.
func (s *socket) burst() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bursts++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bursts--
		if s.flush() != nil {
			s.abort() // the client has taken what is held for written
		}
	}
}

// flush sends what is held.
func (s *socket) flush() error {
	if len(s.held) == 0 {
		return nil
	}
	defer func() { s.held = s.held[:0] }()
	if err := s.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.Conn.Write(s.held)
	return err
}

// abort ends the connection at once, also under a write that does not return.
func (s *socket) abort() { s.ending.Do(func() { _ = s.Close() }) }
