package rabbitmq

import (
	"errors"
	"net"
	"testing"
)

// wire records the sizes of writes.
type wire struct {
	net.Conn
	pieces []int
	err    error
	closed bool
}

func (w *wire) Write(b []byte) (int, error) {
	w.pieces = append(w.pieces, len(b))
	return len(b), w.err
}

func (w *wire) Close() error {
	w.closed = true
	return nil
}

func TestBurstIsWrittenAtItsEnd(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	w := &wire{Conn: near}
	s := &socket{Conn: w}
	write := func(n int, want ...int) {
		t.Helper()
		w.pieces = nil
		if _, err := s.Write(make([]byte, n)); err != nil {
			t.Error(err)
		}
		if len(w.pieces) != len(want) || len(want) > 0 && w.pieces[0] != want[0] {
			t.Errorf("wrote %v, want %v", w.pieces, want)
		}
	}
	write(10, 10)
	end := s.burst()
	write(10)
	write(20)
	write(maxBuffered, maxBuffered+30) // the buffer is full
	write(5)
	second := s.burst()
	write(6)
	end()
	if len(w.pieces) != 1 || w.pieces[0] != 11 {
		t.Errorf("the end of a burst wrote %v, want the buffered writes of all bursts", w.pieces)
	}
	write(7)
	second()
	write(8, 8)

	w.err = errors.New("cut")
	third := s.burst()
	write(9)
	third()
	if !w.closed {
		t.Error("the connection stays open after the buffer could not be written")
	}
}

// RabbitMQ 4 limits the deliveries of a queue without a limit. Earlier versions refuse the argument.
func TestDeliveryLimitOfTheBrokerIsDisabledWhereItExists(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"3.8.9": false, "3.13.7": false, "4.0.0": true, "4.2.1-rc.1": true, "10.0.0": true, "": false, "unknown": false} {
		if limitsDeliveries(version) != want {
			t.Errorf("version %q: %v, want %v", version, !want, want)
		}
	}
}
