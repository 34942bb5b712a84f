package explorer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/page"
)

// message is one message of an entity.
type message struct {
	Path                string
	Dead                bool
	Number              int64
	ID, Session         string
	Subject, Type       string
	Enqueued            time.Time
	Deliveries          uint32
	State               string
	Reason, Description string // of a dead letter
	Properties          []page.Fact
	Brief, Text         string
}

// messageList is a page of messages.
type messageList struct {
	Path, Topic, Name string
	Living            string // Path without the suffix of dead letters
	Dead              bool
	Session           string // filter, if not empty
	Messages          []message
	From, Next        int64 // sequence numbers; Next is 0 at the end
	Sessions          []sessionLine
}

// sessionLine is a session with its number of messages on this page.
type sessionLine struct {
	ID string
	N  int
}

func (e *Explorer) messages(r *http.Request) (any, error) {
	q := r.URL.Query()
	out := &messageList{Path: q.Get("path"), Session: q.Get("session")}
	out.Topic, out.Name, out.Dead = parts(out.Path)
	out.Living = strings.TrimSuffix(out.Path, deadLetters)
	if from := q.Get("from"); from != "" {
		var err error
		if out.From, err = number(from); err != nil {
			return nil, err
		}
	}
	options := busemu.PeekOptions{From: out.From, Count: pageSize + 1}
	if out.Session != "" {
		options.Session = &out.Session
	}
	var err error
	if out.Messages, err = e.peek(out.Path, options); err != nil {
		return nil, err
	}
	if len(out.Messages) > pageSize {
		out.Next = out.Messages[pageSize].Number
		out.Messages = out.Messages[:pageSize]
	}
	counts := map[string]int{}
	for i := range out.Messages {
		if session := out.Messages[i].Session; session != "" && out.Session == "" {
			counts[session]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		out.Sessions = append(out.Sessions, sessionLine{id, counts[id]})
	}
	return out, nil
}

// peek returns messages without locking them. It does not use the SDK, which cannot peek
// across the sessions of an entity.
func (e *Explorer) peek(path string, o busemu.PeekOptions) ([]message, error) {
	found, err := e.bus.PeekPart(path, o)
	if err != nil {
		return nil, missing("entity", "See the list of entities.")
	}
	out := make([]message, len(found))
	for i := range found {
		out[i] = describe(path, &found[i])
	}
	return out, nil
}

// receiver returns a receiver of a queue or a subscription, or of its dead letters.
func (e *Explorer) receiver(path string) (*azservicebus.Receiver, error) {
	topic, name, dead := parts(path)
	options := &azservicebus.ReceiverOptions{}
	if dead {
		options.SubQueue = azservicebus.SubQueueDeadLetter
	}
	if topic == "" {
		return e.sender.NewReceiverForQueue(name, options)
	}
	return e.sender.NewReceiverForSubscription(topic, name, options)
}

func brokerRefused(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return &page.Refusal{Status: http.StatusBadGateway, Title: "The Service Bus emulator refused the request", Detail: err.Error() + ".", Next: "Check whether the entity exists and whether a fault is on."}
}

func describe(path string, m *busemu.PeekedMessage) message {
	out := message{
		Path: path, Dead: strings.HasSuffix(path, deadLetters), Number: m.SequenceNumber, ID: m.ID, Subject: m.Subject, Type: m.ContentType,
		Enqueued: m.EnqueuedAt, Deliveries: m.DeliveryCount, State: m.State, Reason: m.DeadLetter.Reason, Description: m.DeadLetter.Description,
		Text: pretty(m.Body), Brief: brief(string(m.Body)),
	}
	if m.Session != nil {
		out.Session = *m.Session
	}
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		out.Properties = append(out.Properties, page.Fact{Name: name, Value: fmt.Sprint(m.Properties[name])})
	}
	return out
}

func (e *Explorer) message(r *http.Request) (any, error) {
	return e.one(r.URL.Query())
}

// one returns the message of the form values path and number.
func (e *Explorer) one(v url.Values) (*message, error) {
	n, err := number(v.Get("number"))
	if err != nil {
		return nil, err
	}
	found, err := e.peek(v.Get("path"), busemu.PeekOptions{From: n, Count: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Number != n {
		return nil, missing("message", "It may have been received meanwhile. See the list of messages.")
	}
	return &found[0], nil
}

func (e *Explorer) previewResubmit(_ context.Context, v url.Values) (*page.Preview, error) {
	m, err := e.one(v)
	if err != nil {
		return nil, err
	}
	to := destination(m.Path)
	p := &page.Preview{
		Summary: "A copy is sent to " + to + ". Once it is accepted, the dead letter is completed.",
		Facts:   []page.Fact{{Name: "dead letter of", Value: strings.TrimSuffix(m.Path, deadLetters)}, {Name: "reason", Value: m.Reason}, {Name: "session", Value: m.Session}, {Name: "subject", Value: m.Subject}},
		Stamp:   fmt.Sprint(m.Number, m.ID),
		Fields: []page.Field{
			{Name: "id", Label: "Message id", Value: m.ID, Required: true, Hint: "With the same id, an entity with duplicate detection drops the copy within its duplicate window."},
			{Name: "body", Label: "Body", Value: m.Text, Kind: "area"},
		},
	}
	if topic, _, _ := parts(m.Path); topic != "" {
		p.Warning = "A topic gives the copy to all of its subscriptions with a matching rule, not only to this one."
	}
	return p, nil
}

// destination returns the entity to which a dead letter was sent.
func destination(path string) string {
	topic, name, _ := parts(path)
	if topic != "" {
		return topic
	}
	return name
}

const (
	// searched bounds the dead letters that are locked to find one of them.
	searched = 500
	// receiveWait bounds each receive call.
	receiveWait = 2 * time.Second
)

// resubmit receives dead letters until it finds the given one, abandons the others, sends the
// copy, and completes the dead letter. There is no other way to lock a message by its number.
func (e *Explorer) resubmit(ctx context.Context, o *page.Order) error {
	path := o.Values.Get("path")
	n, err := number(o.Values.Get("number"))
	if err != nil {
		return err
	}
	receiver, err := e.receiver(path)
	if err != nil {
		return err
	}
	defer func() { _ = receiver.Close(context.WithoutCancel(ctx)) }()
	var wanted *azservicebus.ReceivedMessage
	var others []*azservicebus.ReceivedMessage
	for wanted == nil && len(others) < searched {
		wait, cancel := context.WithTimeout(ctx, receiveWait)
		// One, because with credit left the receiver would lock an abandoned message again.
		batch, err := receiver.ReceiveMessages(wait, 1, nil)
		cancel()
		if len(batch) == 0 {
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return brokerRefused(err)
			}
			break
		}
		for _, m := range batch {
			if m.SequenceNumber != nil && *m.SequenceNumber == n {
				wanted = m
			} else {
				others = append(others, m)
			}
		}
	}
	for _, m := range others {
		_ = receiver.AbandonMessage(ctx, m, nil) // otherwise its lock expires
	}
	if wanted == nil {
		return missing("dead letter", fmt.Sprintf("It is locked by another receiver, or not among the first %d.", searched))
	}
	if err := e.sendCopy(ctx, path, wanted, o.Values); err != nil {
		_ = receiver.AbandonMessage(ctx, wanted, nil)
		return brokerRefused(err)
	}
	if err := receiver.CompleteMessage(ctx, wanted, nil); err != nil {
		return brokerRefused(err)
	}
	o.Say("sent to " + destination(path) + ", and removed from the dead letters")
	o.Next("See the dead letters", "/broker/messages?"+url.Values{"path": {path}, "from": {"0"}}.Encode())
	return nil
}

func (e *Explorer) sendCopy(ctx context.Context, path string, of *azservicebus.ReceivedMessage, v url.Values) error {
	properties := maps.Clone(of.ApplicationProperties)
	delete(properties, "DeadLetterReason")
	delete(properties, "DeadLetterErrorDescription")
	id, body := v.Get("id"), []byte(v.Get("body"))
	if strings.ReplaceAll(string(body), "\r\n", "\n") == pretty(of.Body) { // as it was shown; browsers send such line ends
		body = of.Body
	}
	return e.put(ctx, destination(path), &azservicebus.Message{
		MessageID: &id, SessionID: of.SessionID, PartitionKey: of.PartitionKey, Subject: of.Subject, ContentType: of.ContentType,
		CorrelationID: of.CorrelationID, ReplyTo: of.ReplyTo, ReplyToSessionID: of.ReplyToSessionID, To: of.To,
		ApplicationProperties: properties, Body: body,
	})
}

func (e *Explorer) put(ctx context.Context, to string, m *azservicebus.Message) error {
	sender, err := e.sender.NewSender(to, nil)
	if err != nil {
		return err
	}
	defer func() { _ = sender.Close(context.WithoutCancel(ctx)) }()
	return sender.SendMessage(ctx, m, nil)
}

func (e *Explorer) previewSend(_ context.Context, v url.Values) (*page.Preview, error) {
	if _, err := e.bus.Counters(v.Get("to")); destination(v.Get("to")) != v.Get("to") || err != nil {
		return nil, missing("topic or queue", "See the list of entities.")
	}
	return &page.Preview{
		Summary: "A message is sent to " + v.Get("to") + ".",
		Fields: []page.Field{
			{Name: "id", Label: "Message id", Value: v.Get("id"), Hint: "Default: a new id."},
			{Name: "session", Label: "Session", Value: v.Get("session"), Hint: "An entity with sessions refuses a message without one."},
			{Name: "subject", Label: "Subject", Value: v.Get("subject")},
			{Name: "body", Label: "Body", Value: v.Get("body"), Kind: "area"},
		},
	}, nil
}

func (e *Explorer) send(ctx context.Context, o *page.Order) error {
	optional := func(name string) *string {
		if text := o.Values.Get(name); text != "" {
			return &text
		}
		return nil
	}
	m := &azservicebus.Message{MessageID: optional("id"), SessionID: optional("session"), Subject: optional("subject"), Body: []byte(o.Values.Get("body"))}
	if m.MessageID == nil {
		id := strconv.FormatInt(time.Now().UnixNano(), 36)
		m.MessageID = &id
	}
	if err := e.put(ctx, o.Values.Get("to"), m); err != nil {
		return brokerRefused(err)
	}
	o.Say("sent to " + o.Values.Get("to") + " as " + *m.MessageID)
	o.Next("See the entities", "/broker")
	return nil
}
