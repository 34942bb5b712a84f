package wire

import (
	"context"
	"fmt"

	"github.com/Azure/go-amqp"
)

// session is an AMQP session for links. It attaches one link at a time, because go-amqp frees the handle
// of a refused or detached link before it has replied to the broker (session.go, mux). A concurrent attach
// could reuse the handle too early.
type session struct {
	*amqp.Session
	links     int // guarded by Conn.mu, like attaching
	attaching bool
}

// linksPerSession is the maximum number of links in an AMQP session. It is below the limit of the
// service, which is 255.
const linksPerSession = 200

// Attach calls open to attach a link in an AMQP session that has room and is not attaching another link.
// It begins a new session if there is none. The caller must call release after the link has ended.
func (c *Conn) Attach(ctx context.Context, open func(*amqp.Session) error) (release func(), err error) {
	s := c.reserveSession()
	if s == nil {
		begun, err := c.begin(ctx)
		if err != nil {
			return nil, err
		}
		s = &session{Session: begun, attaching: true}
		c.mu.Lock()
		c.sessions = append(c.sessions, s)
		c.mu.Unlock()
	}
	err = open(s.Session)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.attaching = false
	if err != nil {
		return nil, err
	}
	s.links++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.links--
	}, nil
}

// reserveSession returns a session with room and sets attaching, or returns nil.
func (c *Conn) reserveSession() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if !s.attaching && s.links < linksPerSession {
			s.attaching = true
			return s
		}
	}
	return nil
}

func (c *Conn) begin(ctx context.Context) (*amqp.Session, error) {
	s, err := c.amqp.NewSession(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	return s, nil
}

// FreeAbandoned detaches links whose attach was canceled before the reply of the broker, because the
// broker could still grant them a session. go-amqp detaches them before its next attach (session.go,
// freeAbandonedLinks), so FreeAbandoned attaches a sender to address. Its result does not matter.
func (c *Conn) FreeAbandoned(ctx context.Context, address string) {
	c.mu.Lock()
	sessions := c.sessions
	c.mu.Unlock()
	for _, s := range sessions {
		if sender, err := s.NewSender(ctx, address, nil); err == nil {
			_ = sender.Close(ctx) // not needed any more
		}
	}
}
