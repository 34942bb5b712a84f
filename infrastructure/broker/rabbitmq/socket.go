package rabbitmq

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// socket is a connection with a write timeout. It buffers the writes of a burst, because the client
// would otherwise make a system call for each message.
type socket struct {
	net.Conn
	aborted atomic.Bool

	mu     sync.Mutex // guards the fields below and orders the writes
	bursts int        // running
	buffer []byte     // written at the end of a burst
}

const maxBuffered = 64 << 10

func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer = append(s.buffer, b...)
	if s.bursts > 0 && len(s.buffer) < maxBuffered {
		return len(b), nil
	}
	return len(b), s.flush()
}

// burst buffers writes until the returned function is called.
func (s *socket) burst() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bursts++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bursts--
		if s.flush() != nil {
			s.abort() // the client believes that the buffer was written
		}
	}
}

func (s *socket) flush() error {
	if len(s.buffer) == 0 {
		return nil
	}
	defer func() { s.buffer = s.buffer[:0] }()
	if err := s.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.Conn.Write(s.buffer)
	return err
}

// abort closes the connection at once, even during a blocked write.
func (s *socket) abort() {
	if s.aborted.CompareAndSwap(false, true) {
		_ = s.Close()
	}
}
