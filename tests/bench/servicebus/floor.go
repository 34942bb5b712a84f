package servicebus

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// floor is a broker that accepts messages and stores nothing, so it gives the maximum rate of
// a client. It implements only the AMQP that sending and receiving need, makes no checks, and
// answers in the reading goroutine.
type floor struct {
	l       net.Listener
	wg      sync.WaitGroup
	payload []byte   // of every message that it delivers
	log     *os.File // nil: nothing is stored

	mu      sync.Mutex // guards the fields below
	conns   map[net.Conn]struct{}
	session int // next session to accept
}

// startFloor starts a floor. With a directory it writes each transfer to a file and syncs the
// file before it answers.
func startFloor(payload []byte, dir string) (*floor, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &floor{l: l, payload: payload, conns: make(map[net.Conn]struct{})}
	if dir != "" {
		if f.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	f.wg.Go(f.accept)
	return f, nil
}

func (f *floor) accept() {
	for {
		nc, err := f.l.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[nc] = struct{}{}
		f.mu.Unlock()
		f.wg.Go(func() { f.serve(nc) })
	}
}

// close returns after all goroutines have ended. Clients must be closed before.
func (f *floor) close() error {
	err := f.l.Close()
	f.mu.Lock()
	for nc := range f.conns {
		_ = nc.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
	if f.log != nil {
		err = errors.Join(err, f.log.Close())
	}
	return err
}

func (f *floor) connectionString() string {
	return "Endpoint=sb://" + f.l.Addr().String() + ";SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"
}

type floorLink struct {
	out     bool
	replies bool
	handle  uint32
	count   uint32
	session string
}

type floorSession struct {
	links    map[uint32]*floorLink
	incoming uint32
	outgoing uint32
	delivery uint32
}

type floorConn struct {
	f        *floor
	out      []byte
	sessions map[uint16]*floorSession
}

func (f *floor) serve(nc net.Conn) {
	defer nc.Close()
	r := bufio.NewReaderSize(nc, 1<<17)
	c := &floorConn{f: f, sessions: make(map[uint16]*floorSession)}
	header := make([]byte, amqp.FrameHeaderSize)
	var body []byte
	for {
		if r.Buffered() == 0 && len(c.out) > 0 {
			if _, err := nc.Write(c.out); err != nil {
				return
			}
			c.out = c.out[:0]
		}
		if _, err := io.ReadFull(r, header); err != nil {
			return
		}
		if string(header[:4]) == "AMQP" {
			c.out = append(c.out, header...)
			if header[4] == byte(amqp.ProtocolSASL) {
				c.out = amqp.AppendFrame(c.out, amqp.FrameSASL, 0, &amqp.SASLMechanisms{Mechanisms: []amqp.Symbol{"ANONYMOUS"}})
			}
			continue
		}
		h, err := amqp.ParseFrameHeader(header)
		if err != nil {
			return
		}
		if cap(body) < int(h.Size) {
			body = make([]byte, h.Size)
		}
		body = body[:h.Size-amqp.FrameHeaderSize]
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		if len(body) > 0 && !c.frame(h, body) {
			_, _ = nc.Write(c.out)
			return
		}
	}
}

func (c *floorConn) send(channel uint16, p amqp.Performative) {
	c.out = amqp.AppendFrame(c.out, amqp.FrameAMQP, channel, p)
}

func (c *floorConn) flow(channel uint16, s *floorSession, p *amqp.Flow) {
	p.NextIncomingID, p.IncomingWindow, p.NextOutgoingID, p.OutgoingWindow = amqp.Some(s.incoming), 1<<20, s.outgoing, 1<<20
	c.send(channel, p)
}
