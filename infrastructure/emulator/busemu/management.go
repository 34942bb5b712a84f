package busemu

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// managementNode serves the requests to <entity>/$management. Each operation has a file
// mgmt_*.go; an unknown one gets 501.
//
// Source: azservicebus internal/mgmt.go; "Service Bus AMQP request/response operations" in the
// service's protocol guide.
type managementNode struct {
	ns   *namespace
	path string // of the entity
}

// mgmtCall is one request in progress.
type mgmtCall struct {
	node    *managementNode
	s       *session
	op      string
	request *request
	body    amqp.Map
	muted   func() // set by a fault: called instead of sending the reply
}

// mgmtOperation is an operation with the right it needs. run calls reply or fail once, at once
// or from the broker's callback, on any goroutine.
type mgmtOperation struct {
	right Rights
	run   func(*mgmtCall)
}

var mgmtOperations = map[string]mgmtOperation{
	"com.microsoft:renew-lock":                 {RightListen, mgmtRenewLock},
	"com.microsoft:renew-session-lock":         {RightListen, mgmtRenewSessionLock},
	"com.microsoft:get-session-state":          {RightListen, mgmtGetSessionState},
	"com.microsoft:set-session-state":          {RightListen, mgmtSetSessionState},
	"com.microsoft:get-message-sessions":       {RightListen, mgmtGetMessageSessions},
	"com.microsoft:peek-message":               {RightListen, mgmtPeekMessage},
	"com.microsoft:batch-delete-messages":      {RightListen, mgmtBatchDeleteMessages},
	"com.microsoft:receive-by-sequence-number": {RightListen, mgmtReceiveBySequenceNumber},
	"com.microsoft:update-disposition":         {RightListen, mgmtUpdateDisposition},
	"com.microsoft:schedule-message":           {RightSend, mgmtScheduleMessage},
	"com.microsoft:cancel-scheduled-message":   {RightSend, mgmtCancelScheduledMessage},
	"com.microsoft:add-rule":                   {RightManage, mgmtAddRule},
	"com.microsoft:remove-rule":                {RightManage, mgmtRemoveRule},
	"com.microsoft:enumerate-rules":            {RightListen, mgmtEnumerateRules},
}

func (n *managementNode) handleRequest(s *session, message []byte) {
	r, err := parseRequest(message)
	if err != nil {
		s.c.log.Debug("$management: request ignored: it does not decode", "error", err)
		return
	}
	m := &mgmtCall{node: n, s: s, request: r}
	m.op, _ = r.properties.String("operation")
	m.body, _ = r.body.(amqp.Map)
	operation, ok := mgmtOperations[m.op]
	if !ok {
		m.fail(&broker.Error{Condition: broker.NotImplemented, Description: fmt.Sprintf("The operation '%s' is not supported by this emulator.", m.op)})
		return
	}
	if s.c.owed.Load() > owedMax {
		m.fail(errTooManyReplies)
		return
	}
	if _, ok := n.ns.credits.take(managementCredits); !ok {
		m.fail(throttled())
		return
	}
	if !s.c.may(operation.right, n.path+managementSuffix) {
		m.respond(http.StatusUnauthorized, errUnauthorized(operation.right.String(), n.path).Description, condUnauthorized, amqp.Map{})
		return
	}
	s.c.perform(work{
		link:      &linkBase{s: s},
		unordered: true,
		call: func() *Call {
			link, _ := r.properties.String("associated-link-name")
			return &Call{Operation: OpManagement, Entity: n.path, Link: link, Name: strings.TrimPrefix(m.op, "com.microsoft:")}
		},
		serve: func() { operation.run(m) },
		silent: func(done func()) {
			m.muted = done
			operation.run(m)
		},
		refuse: func(err error) { m.fail(err) },
	})
}

func (m *mgmtCall) broker() *broker.Broker { return m.node.ns.broker }

// badRequest refuses a request with a missing field or one of a wrong type.
func (m *mgmtCall) badRequest(field string) {
	m.fail(&broker.Error{Condition: broker.ArgumentError, Description: fmt.Sprintf("The request's field '%s' is missing or of a wrong type.", field)})
}

// sessionID returns the session of a request: the one it names, or that of the link it names,
// by which the Go SDK peeks in a session. nil: none. by is the receiver of that link, which must
// hold the session; nil: any may.
func (m *mgmtCall) sessionID() (id *string, by *broker.Receiver, err error) {
	by, err = m.receiver()
	if named, ok := m.body.String("session-id"); ok {
		return &named, by, err
	}
	if by != nil {
		if held, ok := by.Session(); ok {
			id = &held
		}
	}
	return id, by, err
}

// heldSession is sessionID for a request that needs a session and its lock. It answers others.
func (m *mgmtCall) heldSession() (id *string, by *broker.Receiver, ok bool) {
	id, by, err := m.sessionID()
	switch {
	case err != nil:
		m.fail(err)
	case id == nil:
		m.badRequest("session-id")
	default:
		return id, by, true
	}
	return nil, nil, false
}

// receiver returns the receiver of the link that a request names, nil if it names none. On an
// entity with sessions it refuses the name of a link that is gone: its lock is lost, and another
// receiver may hold the session by now.
func (m *mgmtCall) receiver() (*broker.Receiver, error) {
	name, ok := m.request.properties.String("associated-link-name")
	if !ok {
		return nil, nil
	}
	for _, s := range m.s.c.sessions {
		for _, l := range s.links {
			if out, ok := l.(*outgoingLink); ok && out.name == name && out.source != nil && !out.over() {
				return out.source, nil
			}
		}
	}
	if info, err := m.broker().Lookup(m.node.path); err != nil || !info.RequiresSession {
		return nil, err
	}
	return nil, &broker.Error{Condition: broker.SessionLockLost, Description: "The session lock has expired: the link '" + name + "' is closed. Accept the session again."}
}

// lockTokens reads the field lock-tokens.
func (m *mgmtCall) lockTokens() ([]broker.LockToken, bool) {
	v, _ := m.body.Get("lock-tokens")
	elems, ok := amqp.Elements(v)
	tokens := make([]broker.LockToken, len(elems))
	for i, e := range elems {
		id, isUUID := e.(amqp.UUID)
		ok = ok && isUUID
		tokens[i] = broker.LockToken(id)
	}
	return tokens, ok && len(tokens) > 0
}

// sequenceNumbers reads the field sequence-numbers.
func (m *mgmtCall) sequenceNumbers() ([]int64, bool) {
	v, _ := m.body.Get("sequence-numbers")
	elems, ok := amqp.Elements(v)
	numbers := make([]int64, len(elems))
	for i, e := range elems {
		n, isInteger := amqp.Integer(e)
		ok = ok && isInteger
		numbers[i] = n
	}
	return numbers, ok && len(numbers) > 0
}

// reply answers with a body, nil meaning the empty map.
func (m *mgmtCall) reply(status int, body amqp.Map) {
	if body == nil {
		body = amqp.Map{}
	}
	m.respond(status, http.StatusText(status), "", body)
}

// fail answers with the status and condition of an error.
func (m *mgmtCall) fail(err error) {
	e := wireError(err)
	m.respond(mgmtStatus(err), e.Description, e.Condition, amqp.Map{})
}

// done calls reply or fail.
func (m *mgmtCall) done(err error) {
	if err != nil {
		m.fail(err)
		return
	}
	m.reply(http.StatusOK, nil)
}

func (m *mgmtCall) respond(status int, description string, condition amqp.Symbol, body amqp.Map) {
	message := m.request.response(func(w *amqp.MapWriter) {
		w.String("statusCode", int32(status))
		w.String("statusDescription", description)
		if condition != "" {
			w.String("errorCondition", condition)
		}
	}, body)
	c := m.s.c
	if m.muted != nil {
		c.post(event{fn: m.muted})
		return
	}
	c.owed.Add(int64(len(message)))
	c.post(event{fn: func() {
		m.s.reply(node{kind: nodeManagement, path: m.node.path}, m.request.replyTo, message)
	}})
}

// integer reads a field of any integer type; 0 if it is missing or negative.
func (m *mgmtCall) integer(field string) int {
	v, _ := m.body.Get(field)
	n, _ := amqp.Integer(v)
	return int(max(n, 0))
}

// background runs a call that waits for the disk outside of the connection's loop.
func (m *mgmtCall) background(run func(ctx context.Context)) {
	m.node.ns.background(run)
}

// subscriptionOf splits topic/Subscriptions/name.
func subscriptionOf(path string) (topic, name string, ok bool) {
	lower := strings.ToLower(path)
	const infix = "/subscriptions/"
	i := strings.Index(lower, infix)
	if i < 0 {
		return "", "", false
	}
	name = path[i+len(infix):]
	return path[:i], name, !strings.Contains(name, "/")
}

func (m *mgmtCall) subscription() (topic, name string, ok bool) {
	topic, name, ok = subscriptionOf(m.node.path)
	if !ok {
		m.fail(&broker.Error{Condition: broker.NotAllowed, Description: "Rules belong to subscriptions; '" + m.node.path + "' is none."})
	}
	return topic, name, ok
}
