package subscriber

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/consumer"
)

// requests sends requests to a node of the broker, $cbs or $management, and hands out the
// answers (azservicebus internal/rpc.go). Safe for concurrent use.
type requests struct {
	sender   *amqp.Sender
	receiver *amqp.Receiver
	replyTo  string
	ended    chan struct{} // closed when no more answers come

	mu      sync.Mutex // guards what follows; not held while something is waited for
	sent    uint64
	waiting map[string]chan *amqp.Message
	err     error // why no more answers come
}

// answersAhead is how many answers the broker may send at a time.
const answersAhead = 1000

func openRequests(ctx context.Context, session *amqp.Session, address string) (*requests, error) {
	r := &requests{replyTo: "feedbox-replies-of-" + address, ended: make(chan struct{}), waiting: map[string]chan *amqp.Message{}}
	var err error
	if r.sender, err = session.NewSender(ctx, address, nil); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", address, err)
	}
	r.receiver, err = session.NewReceiver(ctx, address, &amqp.ReceiverOptions{
		TargetAddress: r.replyTo, Credit: answersAhead,
		SettlementMode: amqp.ReceiverSettleModeFirst.Ptr(), RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	})
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", address, err)
	}
	return r, nil
}

// receive hands out answers until the link or ctx ends.
func (r *requests) receive(ctx context.Context) {
	defer close(r.ended)
	for {
		m, err := r.receiver.Receive(ctx, nil)
		if err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err = err
			return
		}
		if m.Properties == nil {
			continue
		}
		id, _ := m.Properties.CorrelationID.(string)
		r.mu.Lock()
		answer := r.waiting[id]
		delete(r.waiting, id)
		r.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// do sends a request and waits for its answer, at most requestTimeout. A refusal is a
// *RefusedError.
func (r *requests) do(ctx context.Context, properties map[string]any, body any) (*amqp.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok && properties["type"] == nil { // not for $cbs
		properties["server-timeout"] = uint32(max(0, time.Until(deadline)-time.Second) / time.Millisecond)
	}
	answer := make(chan *amqp.Message, 1)
	r.mu.Lock()
	r.sent++
	id := strconv.FormatUint(r.sent, 10)
	r.waiting[id] = answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, id)
	}()
	err := r.sender.Send(ctx, &amqp.Message{
		Properties: &amqp.MessageProperties{MessageID: id, ReplyTo: &r.replyTo}, ApplicationProperties: properties, Value: body,
	}, nil)
	if err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return m, refusal(m)
	case <-r.ended:
		r.mu.Lock()
		defer r.mu.Unlock()
		return nil, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// RefusedError is a request that the broker refused: for a token, a lock or a session's
// state.
type RefusedError struct {
	Status      int // as in HTTP
	Description string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the broker refused it with status %d: %s", e.Status, e.Description)
}

// Is makes a refusal for a lock that is gone ErrLockLost.
func (e *RefusedError) Is(target error) bool {
	return target == consumer.ErrLockLost && e.Status == http.StatusGone
}

func refusal(m *amqp.Message) error {
	for _, key := range []string{"status-code", "statusCode"} { // the second is older
		if status, ok := m.ApplicationProperties[key].(int32); ok {
			if status >= 200 && status < 300 {
				return nil
			}
			e := &RefusedError{Status: int(status)}
			for _, key := range []string{"status-description", "statusDescription"} {
				if text, ok := m.ApplicationProperties[key].(string); ok {
					e.Description = text
				}
			}
			return e
		}
	}
	return errors.New("the broker's answer has no status")
}
