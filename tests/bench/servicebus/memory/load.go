package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"
)

const inBatch = 100

// patience is the time that a client waits for an answer, because the machine may be busy.
const patience = time.Minute

// fill sends the messages and prints the memory of the process ten times.
func fill(ctx context.Context, p *process, s settings) (err error) {
	client, err := azservicebus.NewClientFromConnectionString(p.connection, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(ctx)) }()
	sender, err := client.NewSender(topic, nil)
	if err != nil {
		return err
	}
	for part := range 10 {
		var next atomic.Int64
		first, limit := part*s.messages/10, (part+1)*s.messages/10
		next.Store(int64(first))
		group, ctx := errgroup.WithContext(ctx)
		for range s.senders {
			group.Go(func() error {
				for {
					end := int(next.Add(inBatch))
					if end-inBatch >= limit {
						return nil
					}
					if err := send(ctx, sender, end-inBatch, min(end, limit), s); err != nil {
						return err
					}
				}
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := p.report(strconv.Itoa(limit), "heap"); err != nil {
			return err
		}
	}
	return nil
}

// send sends a batch of some sessions, with ten consecutive messages of each.
func send(ctx context.Context, sender *azservicebus.Sender, from, to int, s settings) error {
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return err
	}
	body := make([]byte, s.size)
	for n := from; n < to; n++ {
		id, session := fmt.Sprintf("00000000-0000-0000-0000-%012d", n), fmt.Sprintf("session-%05d", n/10%s.sessions)
		if err := batch.AddMessage(&azservicebus.Message{Body: body, MessageID: &id, SessionID: &session}, nil); err != nil {
			return err
		}
	}
	return sender.SendMessageBatch(ctx, batch, nil)
}

// empty receives all messages of a subscription, session by session, and counts them.
func empty(ctx context.Context, p *process, s settings, from string) error {
	var left atomic.Int64
	left.Store(int64(s.messages))
	group, ctx := errgroup.WithContext(ctx)
	for range s.receivers {
		group.Go(func() (err error) {
			client, err := azservicebus.NewClientFromConnectionString(p.connection, nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, client.Close(ctx)) }()
			for left.Load() > 0 {
				if err := emptyNext(ctx, client, from, s.messages/s.sessions, &left); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// emptyNext empties the next session if one is available soon.
func emptyNext(ctx context.Context, client *azservicebus.Client, from string, each int, left *atomic.Int64) error {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := client.AcceptNextSessionForSubscription(wait, topic, from, &azservicebus.SessionReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	var timeout *azservicebus.Error
	switch {
	case errors.As(err, &timeout) && timeout.Code == azservicebus.CodeTimeout, wait.Err() != nil && ctx.Err() == nil:
		return nil
	case err != nil:
		return err
	}
	for got := 0; got < each; {
		short, cancel := context.WithTimeout(ctx, patience)
		messages, err := r.ReceiveMessages(short, each-got, nil)
		cancel()
		if err != nil {
			return errors.Join(fmt.Errorf("session %s: %d of %d messages: %w", r.SessionID(), got, each, err), r.Close(ctx))
		}
		got += len(messages)
		left.Add(-int64(len(messages)))
	}
	return r.Close(ctx)
}
