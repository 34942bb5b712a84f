package busemu

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// $cbs put-token: a token grants rights on an audience.
//
//	Request:  operation "put-token", type "servicebus.windows.net:sastoken" or "jwt", name
//	          (the audience), body: the token.
//	Reply:    status-code int 200, 400, 401 or 404; status-description.
//
// It supports shared access signatures and tokens of Entra ID (jwt.go). The text of a token
// decides between them, because the Python SDK gives both the type "jwt".
//
// It refuses a second pair of links on a connection with amqp:not-allowed, which makes the SDK
// reset its connection. An audience without an entity gets 404, which the SDK reports as not
// found.
//
// Source: AMQP Claims-Based Security; azservicebus internal/cbs.go.

// cbsNode is the $cbs node of a connection. The connection's loop owns it.
type cbsNode struct {
	requests, replies bool // a link is attached in this direction
}

var errSecondCBS = &broker.Error{Condition: broker.NotAllowed, Description: "Only one $cbs link pair is allowed for each connection."}

func (n *cbsNode) attachRequests() error {
	if n.requests {
		return errSecondCBS
	}
	n.requests = true
	return nil
}

func (n *cbsNode) attachReplies() error {
	if n.replies {
		return errSecondCBS
	}
	n.replies = true
	return nil
}

func (n *cbsNode) detachRequests() { n.requests = false }

func (n *cbsNode) detachReplies() { n.replies = false }

func (n *cbsNode) handleRequest(s *session, message []byte) {
	r, err := parseRequest(message)
	if err != nil {
		s.c.log.Debug("$cbs: request ignored: it does not decode", "error", err)
		return
	}
	answer := func(status int, description string) {
		reply := r.response(func(w *amqp.MapWriter) {
			w.String("status-code", int32(status))
			w.String("status-description", description)
		}, nil)
		s.c.owed.Add(int64(len(reply)))
		s.reply(node{kind: nodeCBS}, r.replyTo, reply)
	}
	s.c.perform(work{
		link:      &linkBase{s: s},
		unordered: true,
		call: func() *Call {
			audience, _ := r.properties.String("name")
			return &Call{Operation: OpPutToken, Entity: parseAddress(audience).path}
		},
		serve: func() { answer(s.c.putToken(r)) },
		silent: func(done func()) {
			s.c.putToken(r)
			done()
		},
		refuse: func(err error) { answer(mgmtStatus(err), wireError(err).Description) },
	})
}

// putToken grants a token's rights on its audience.
func (c *conn) putToken(r *request) (status int, description string) {
	if op, _ := r.properties.String("operation"); op != "put-token" {
		return http.StatusBadRequest, "InvalidOperation: $cbs takes put-token only."
	}
	audience, ok := r.properties.String("name")
	if !ok {
		return http.StatusBadRequest, "InvalidAudience: the name property is missing."
	}
	text, ok := amqp.Text(r.body)
	if !ok {
		return http.StatusBadRequest, "InvalidToken: the body is not a string."
	}
	kind, _ := r.properties.String("type")
	if kind != "servicebus.windows.net:sastoken" && kind != "jwt" {
		return http.StatusBadRequest, "InvalidToken: a token of type '" + kind + "' is not supported by this emulator; use servicebus.windows.net:sastoken or jwt."
	}
	read := c.ns.keys.verify
	if kind == "jwt" && !strings.HasPrefix(text, sasScheme) {
		read = readJWT
	}
	token, err := read(text, time.Now())
	if err != nil {
		return http.StatusUnauthorized, err.Error()
	}
	n := parseAddress(audience)
	path := audiencePath(audience)
	if !token.covers(path) {
		return http.StatusUnauthorized, "InvalidAudience: the token is for '" + token.resource + "', not for '" + audience + "'."
	}
	if n.path != "" {
		if _, err := c.ns.broker.Lookup(n.path); errors.Is(err, broker.NotFound) {
			return http.StatusNotFound, "The messaging entity '" + audience + "' could not be found."
		}
	}
	c.grant(path, grant{rights: token.rights, expires: token.expires})
	return http.StatusOK, "OK"
}
