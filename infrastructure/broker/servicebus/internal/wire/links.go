package wire

import (
	"context"
	"fmt"

	"github.com/Azure/go-amqp"
)

// session is an AMQP session for links. It attaches one at a time: go-amqp frees the
// handle of a link that the broker refuses or detaches before it has answered that
// (session.go, mux), and another attach could take it too soon.
type session struct {
	*amqp.Session
	links     int // guarded by Conn.mu, as is what follows
	attaching bool
}

// linksPerSession is how many links an AMQP session gets: the service allows 255.
const linksPerSession = 200

// Attach calls open to open a link on an AMQP session that has room and does not attach.
// There are as many of them as attach at a time, and more only for very many links. leave
// is to be called once the link has ended.
func (c *Conn) Attach(ctx context.Context, open func(*amqp.Session) error) (leave func(), err error) {
	s := c.room()
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

func (c *Conn) room() *session {
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

// FreeAbandoned detaches the links whose attach was given up unanswered: else the broker
// might still grant what they asked for. go-amqp does so before its next attach
// (session.go, freeAbandonedLinks), for which this one is made, to address; what becomes
// of it does not matter.
func (c *Conn) FreeAbandoned(ctx context.Context, address string) {
	c.mu.Lock()
	sessions := c.sessions
	c.mu.Unlock()
	for _, s := range sessions {
		if sender, err := s.NewSender(ctx, address, nil); err == nil {
			_ = sender.Close(ctx) // it has served
		}
	}
}
