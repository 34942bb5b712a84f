package busemu

import (
	"feedbox/infrastructure/emulator/busemu/amqp"
)

// request is a message sent to $cbs or $management.
type request struct {
	id         []byte // message-id, encoded: the reply's correlation-id is the same
	replyTo    string
	properties amqp.Map
	body       any
}

func parseRequest(message []byte) (*request, error) {
	m, err := amqp.SplitMessage(message)
	if err != nil {
		return nil, err
	}
	props, err := amqp.DecodeProperties(m.Properties)
	if err != nil {
		return nil, err
	}
	r := &request{id: props[amqp.MessageID]}
	if r.id == nil {
		r.id = props[amqp.CorrelationID]
	}
	r.replyTo, _ = props.Text(amqp.ReplyTo)
	if r.properties, err = amqp.DecodeMapSection(m.ApplicationProperties); err != nil {
		return nil, err
	}
	r.body, err = m.Value()
	return r, err
}

// response encodes a reply: correlation-id, application-properties, amqp-value.
func (r *request) response(properties func(*amqp.MapWriter), body any) []byte {
	var p amqp.Properties
	p[amqp.CorrelationID] = r.id
	w := amqp.BeginMapSection(p.Append(nil), amqp.CodeApplicationProperties)
	properties(&w)
	return amqp.AppendValueSection(w.Finish(), body)
}

// reply sends a reply to the receiver that the request names: by the address of its target
// (Go), otherwise by its link name (JavaScript), otherwise to the only receiver on the same
// node in the same session. The caller has added the reply to conn.owed.
func (s *session) reply(n node, replyTo string, message []byte) {
	var byName, near *outgoingLink
	candidates := func(of *session) *outgoingLink {
		for _, l := range of.links {
			out, ok := l.(*outgoingLink)
			if !ok || out.over() || out.node.kind != n.kind || n.kind == nodeManagement && !samePath(out.node.path, n.path) {
				continue
			}
			switch {
			case replyTo != "" && out.target == replyTo:
				return out
			case replyTo != "" && out.name == replyTo:
				byName = out
			case of == s:
				near = out
			}
		}
		return nil
	}
	l := candidates(s)
	for _, other := range s.c.sessions {
		if l != nil {
			break
		}
		if other != s {
			l = candidates(other)
		}
	}
	if l == nil {
		l = byName
	}
	if l == nil {
		l = near
	}
	if l == nil {
		s.c.log.Debug("reply dropped: no receiver", "reply-to", replyTo)
		s.c.owed.Add(-int64(len(message)))
		return
	}
	if len(l.replies) >= maxReplies {
		l.sendDetach(&amqp.Error{Condition: condResourceLimit, Description: "too many replies wait for credit"})
		l.release()
		s.c.owed.Add(-int64(len(message)))
		return
	}
	l.replies = append(l.replies, message)
	l.enqueue()
}

// maxReplies limits the replies that wait for a receiver's credit.
const maxReplies = 1000
