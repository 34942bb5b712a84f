package busemu

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// healthQueue is the queue of the health check. The first check creates it; it is not listed.
const healthQueue = "busemu-health"

const healthTimeout = 3 * time.Second

// health answers GET /health: 200 if the emulator can send, receive and complete a message and
// answers an AMQP protocol header, otherwise 503 with the reason.
func (a *adminServer) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := a.srv.Healthy(r.Context()); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, `{"status":"unhealthy","error":%q}`+"\n", err.Error())
		return
	}
	_, _ = w.Write([]byte(`{"status":"healthy"}` + "\n"))
}

// Healthy sends, receives and completes a message, and exchanges AMQP protocol headers. It
// takes 3 s at most.
func (s *Server) Healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if err := s.helloAMQP(ctx); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := s.CreateQueue(ctx, Queue{Name: healthQueue, DefaultTTL: time.Minute, Partitioned: s.o.Premium && s.o.Partitions > 1}); err != nil {
		return err
	}
	sent := make(chan error, 1)
	payload := amqp.AppendData(nil, []byte("healthy?"))
	s.broker.Send(healthQueue, []broker.Message{{Payload: payload}}, func(err error) { sent <- err })
	if err := await(ctx, sent); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := s.receiveHealth(ctx); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}

func (s *Server) receiveHealth(ctx context.Context) error {
	tokens := make(chan broker.LockToken, 1)
	ended := make(chan error, 1)
	r, err := s.broker.OpenReceiver(healthQueue, broker.ReceiverOptions{
		Deliver: func(d []broker.Delivery) { tokens <- d[0].LockToken }, // one credit, so one message
		Closed:  func(err error) { ended <- err },
	})
	if err != nil {
		return err
	}
	defer r.Close()
	r.AddCredit(1)
	select {
	case token := <-tokens:
		done := make(chan error, 1)
		r.Settle(token, broker.Outcome{Kind: broker.Complete}, func(err error) { done <- err })
		return await(ctx, done)
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// helloAMQP exchanges protocol headers on a connection of its own.
func (s *Server) helloAMQP(ctx context.Context) error {
	nc, err := s.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	deadline, _ := ctx.Deadline()
	if err := nc.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := nc.Write(amqp.AppendProtocolHeader(nil, amqp.ProtocolSASL)); err != nil {
		return err
	}
	answer := make([]byte, amqp.FrameHeaderSize)
	if _, err := nc.Read(answer); err != nil {
		return err
	}
	id, err := amqp.ParseProtocolHeader(answer)
	if err == nil && id != amqp.ProtocolSASL {
		err = errors.New("unexpected protocol header")
	}
	return err
}

func await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
