package subscriber

import (
	"errors"
	"strings"
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

func (s Source) check() error {
	if strings.TrimSuffix(string(s), deadLetterQueue) == "" {
		return errors.New("the source needs a name: Subscription(topic, name) or Queue(name)")
	}
	return nil
}
