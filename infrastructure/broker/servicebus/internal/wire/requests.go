package wire

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/internal/shared"
)

// Nodes of the broker that accept requests. The node of an entity is its path with ManagementSuffix.
const (
	claims           = "$cbs"
	ManagementSuffix = "/$management"
)

const requestTimeout = 10 * time.Second

// nodeCloseTimeout bounds the end of an AMQP session. It is short, because a silent broker does not reply.
const nodeCloseTimeout = time.Second

// ErrNoResponse means that requestTimeout has passed. The caller's context may end sooner; with this cause it says the
// same.
var ErrNoResponse = errors.New("no response from the broker")

// Request sends a request to a node of the broker and returns the response. It waits for 10 seconds at
// most. A refusal is a *RefusedError. The first request opens the links to the node, which stay open
// until they end or a request gets no response.
func (c *Conn) Request(ctx context.Context, node string, properties map[string]any, body any) (*amqp.Message, error) {
	shared := c.node(node)
	for {
		r, err := shared.Get(ctx)
		if err != nil {
			return nil, err
		}
		select {
		case <-r.ended:
			shared.Drop(ctx, r)
			continue
		default:
		}
		response, err := r.do(ctx, properties, body)
		if _, ended := errors.AsType[*amqp.LinkError](err); ended || errors.Is(err, ErrNoResponse) {
			shared.Drop(ctx, r)
		}
		return response, err
	}
}

func (c *Conn) node(address string) *shared.Resource[requests] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[address] == nil {
		c.nodes[address] = shared.New(
			func(ctx context.Context) (*requests, error) { return c.openNode(ctx, address) },
			func(ctx context.Context, r *requests) error { r.close(ctx); return nil },
		)
	}
	return c.nodes[address]
}

func (c *Conn) openNode(ctx context.Context, address string) (*requests, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if address != claims {
		if err := c.Claim(ctx, address); err != nil {
			return nil, err
		}
	}
	session, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	r := &requests{
		session: session, replyTo: "feedbox-replies-of-" + address,
		ended: make(chan struct{}), waiting: map[string]chan *amqp.Message{},
	}
	if err := r.open(ctx, address); err != nil {
		r.close(ctx)
		return nil, fmt.Errorf("attach to %s: %w", address, err)
	}
	alive := context.WithoutCancel(ctx) // until the connection ends
	c.tasks.Go(func() { r.receive(alive) })
	return r, nil
}

// requests sends requests to a node of the broker and matches the responses (azservicebus
// internal/rpc.go). It is safe for concurrent use.
type requests struct {
	session  *amqp.Session // only for this node
	sender   *amqp.Sender
	receiver *amqp.Receiver
	replyTo  string
	ended    chan struct{} // closed when no more responses arrive

	mu      sync.Mutex // guards the fields below; never held during a wait
	sent    uint64
	waiting map[string]chan *amqp.Message
	err     error // set before ended is closed
}

const responseCredit = 1000

func (r *requests) open(ctx context.Context, address string) (err error) {
	if r.sender, err = r.session.NewSender(ctx, address, nil); err != nil {
		return err
	}
	r.receiver, err = r.session.NewReceiver(ctx, address, &amqp.ReceiverOptions{
		TargetAddress: r.replyTo, Credit: responseCredit,
		SettlementMode: amqp.ReceiverSettleModeFirst.Ptr(), RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	})
	return err
}

func (r *requests) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodeCloseTimeout)
	defer cancel()
	_ = r.session.Close(ctx) // fails if the session has ended
}

// receive passes responses to their waiting callers until the link or ctx ends.
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
		response := r.waiting[id]
		delete(r.waiting, id)
		r.mu.Unlock()
		if response != nil {
			response <- m
		}
	}
}

// do sends a request and waits for the response.
func (r *requests) do(ctx context.Context, properties map[string]any, body any) (*amqp.Message, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, ErrNoResponse)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok && properties["type"] == nil { // requests to $cbs have a type and no timeout
		properties["server-timeout"] = uint32(max(0, time.Until(deadline)-time.Second) / time.Millisecond)
	}
	response := make(chan *amqp.Message, 1)
	r.mu.Lock()
	r.sent++
	id := strconv.FormatUint(r.sent, 10)
	r.waiting[id] = response
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, id)
	}()
	err := r.sender.Send(ctx, &amqp.Message{
		Properties: &amqp.MessageProperties{MessageID: id, ReplyTo: &r.replyTo}, ApplicationProperties: properties, Value: body,
	}, nil)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	select {
	case m := <-response:
		return m, refusal(m)
	case <-r.ended:
		r.mu.Lock()
		defer r.mu.Unlock()
		return nil, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), ctx.Err())
	}
}

// RefusedError is a request that the broker refused.
type RefusedError struct {
	Status      int // HTTP status
	Description string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("request refused with status %d: %s", e.Status, e.Description)
}

func refusal(m *amqp.Message) error {
	for _, key := range []string{"status-code", "statusCode"} { // the second is an older name
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
	return errors.New("the response of the broker has no status")
}
