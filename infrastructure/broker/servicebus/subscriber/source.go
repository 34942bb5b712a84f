package subscriber

import (
	"errors"
	"strings"
)

// Source is what a processor receives from.
type Source string

// Subscription is the subscription of a topic.
func Subscription(topic, name string) Source {
	if topic == "" || name == "" {
		return ""
	}
	return Source(topic + "/Subscriptions/" + name)
}

// Queue is a queue.
func Queue(name string) Source { return Source(name) }

const deadLetterQueue = "/$DeadLetterQueue"

// DeadLetters is the dead-letter queue of s. It has no sessions: a Processor serves it.
func (s Source) DeadLetters() Source { return s + deadLetterQueue }

func (s Source) check() error {
	if strings.TrimSuffix(string(s), deadLetterQueue) == "" {
		return errors.New("the source needs a name: Subscription(topic, name) or Queue(name)")
	}
	return nil
}
