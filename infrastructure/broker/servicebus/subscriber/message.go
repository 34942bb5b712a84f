package subscriber

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// message is a received message.
type message struct {
	*amqp.Message
	event    *consumer.Event
	progress handling.Progress
}

func newEvent(source Source, key string, m *amqp.Message) *consumer.Event {
	e := &consumer.Event{Body: body(m), DeliveryCount: 1, Properties: m.ApplicationProperties}
	handling.ReadProperties(e)
	handling.ReadCreation(e, e.Properties[publish.PropertyTime])
	e.Key = key
	if m.Header != nil {
		e.DeliveryCount += int(m.Header.DeliveryCount)
	}
	if p := m.Properties; p != nil {
		if p.Subject != nil {
			e.Action = *p.Subject
		}
		if text, ok := p.MessageID.(string); ok {
			e.ID = text
		} else if p.MessageID != nil {
			e.ID = fmt.Sprint(p.MessageID)
		}
	}
	readResubmission(source, e)
	e.EnqueuedAt, _ = m.Annotations["x-opt-enqueued-time"].(time.Time)
	e.SequenceNumber, _ = m.Annotations["x-opt-sequence-number"].(int64)
	return e
}

// readResubmission sets the id of a resubmitted event, whose message has another id. All subscriptions of
// the topic receive the message, but only one is to handle it again (see isForOtherSubscription).
func readResubmission(source Source, e *consumer.Event) {
	id, _ := e.Properties[consumer.PropertyResubmission].(string)
	if id == "" {
		return
	}
	if event, _ := e.Properties[consumer.PropertyEventID].(string); event != "" {
		e.ID = event
	}
	if to, _ := e.Properties[consumer.PropertyResubmittedTo].(string); strings.EqualFold(to, string(source)) {
		e.Resubmission = id
	}
}

// isForOtherSubscription reports whether e was sent again for another subscription of the topic of source. A
// queue, or a subscription of another topic, can receive e by forwarding. It handles e.
func isForOtherSubscription(source Source, e *consumer.Event) bool {
	to, _ := e.Properties[consumer.PropertyResubmittedTo].(string)
	topic, _, resubmitted := strings.Cut(to, "/Subscriptions/")
	own, name, isSubscription := strings.Cut(string(source), "/Subscriptions/")
	return resubmitted && isSubscription && strings.EqualFold(own, topic) && !strings.EqualFold(to, string(source)) && !strings.HasSuffix(name, deadLetterQueue)
}

// body returns the bytes of a message: its data sections, or a value that is a string or bytes.
func body(m *amqp.Message) []byte {
	if len(m.Data) == 1 {
		return m.Data[0]
	}
	switch v := m.Value.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return bytes.Join(m.Data, nil)
}

// keyOf returns the key of a message from a source without sessions.
func keyOf(m *amqp.Message) string {
	if m.Properties != nil && m.Properties.GroupID != nil {
		return *m.Properties.GroupID
	}
	key, _ := m.Annotations["x-opt-partition-key"].(string)
	return key
}

// Source is the address of a queue or subscription.
type Source string

// Subscription returns the source of a subscription of a topic.
func Subscription(topic, name string) Source {
	if topic == "" || name == "" {
		return ""
	}
	return Source(topic + "/Subscriptions/" + name)
}

// Queue returns the source of a queue.
func Queue(name string) Source { return Source(name) }

const deadLetterQueue = "/$DeadLetterQueue"

// DeadLetters returns the dead-letter queue of s. It has no sessions, so receive from it with a Processor.
func (s Source) DeadLetters() Source { return s + deadLetterQueue }

// telemetry returns the source by the semantic conventions: the name of the topic or queue, and that of the
// subscription.
func (s Source) telemetry() handling.Source {
	name, subscription, _ := strings.Cut(string(s), "/Subscriptions/")
	return handling.Source{System: "servicebus", Destination: name, Subscription: subscription}
}

func (s Source) check() error {
	if strings.TrimSuffix(string(s), deadLetterQueue) == "" {
		return errors.New("the source needs a name: Subscription(topic, name) or Queue(name)")
	}
	return nil
}
