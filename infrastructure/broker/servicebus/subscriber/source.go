package subscriber

import (
	"errors"
	"strings"

	"feedbox/infrastructure/consumer/handling"
)

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
