package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/verify"
)

// ContainerClient opens one container of the emulator as a stranger would: the vendor's
// SDK, a key, an endpoint.
func (e Endpoints) ContainerClient(t *testing.T, name string) *azcosmos.ContainerClient {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, cred, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewContainer(e.Database, name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type storedDocument struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Type         string `json:"type"`
	Data         struct {
		Action           string `json:"action"`
		Version          int64  `json:"version"`
		AggregateVersion int64  `json:"aggregateVersion"`
		Sequence         int64  `json:"sequence"`
	} `json:"data"`
}

// ReadStore reads every contact and event of the data container.
func ReadStore(ctx context.Context, t *testing.T, data *azcosmos.ContainerClient) (contacts []verify.Contact, events []verify.Event) {
	t.Helper()
	pager := data.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatalf("read the store: %v", err)
		}
		for _, raw := range page.Items {
			var d storedDocument
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			switch d.Type {
			case "contact":
				contacts = append(contacts, verify.Contact{ID: d.ID, Version: d.Data.Version, Sequence: d.Data.Sequence})
			case "domainEvent":
				events = append(events, verify.Event{ID: d.ID, Key: d.PartitionKey, Action: d.Data.Action, Version: d.Data.AggregateVersion, Sequence: d.Data.Sequence})
			}
		}
	}
	return contacts, events
}

// Consumer receives every session of a subscription and keeps the messages in
// the order of their arrival.
type Consumer struct {
	mu       sync.Mutex
	messages []verify.Message

	cancel context.CancelFunc
	done   sync.WaitGroup
	client *azservicebus.Client
}

// StartConsumer begins to receive with a number of concurrent sessions.
func (e Endpoints) StartConsumer(t *testing.T, sessions int) *Consumer {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBusConnectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Consumer{cancel: cancel, client: client}
	for range sessions {
		c.done.Go(func() { c.receive(ctx, e) })
	}
	t.Cleanup(c.Stop)
	return c
}

// Stop ends the consumer and waits for it. It can be called twice.
func (c *Consumer) Stop() {
	c.cancel()
	c.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.client.Close(ctx)
}

// Messages returns a copy of what has arrived.
func (c *Consumer) Messages() []verify.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]verify.Message(nil), c.messages...)
}

// Count is the number of messages that have arrived.
func (c *Consumer) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.messages)
}

func (c *Consumer) receive(ctx context.Context, e Endpoints) {
	for ctx.Err() == nil {
		accept, cancel := context.WithTimeout(ctx, 5*time.Second)
		session, err := c.client.AcceptNextSessionForSubscription(accept, e.Topic, e.Subscription, nil)
		cancel()
		if err != nil {
			continue // none has messages, or the consumer is being stopped
		}
		c.drain(ctx, session)
		closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = session.Close(closing)
		cancel()
	}
}

// drain takes what the session holds now and leaves it, so that a few receivers
// serve many sessions. It asks for one message at a time and never again after a
// time-out: between two calls the client gives back what arrives unasked
// (azservicebus, receiver.go, newReleaserFunc), and the next call may be faster,
// which would look like a breach of order.
func (c *Consumer) drain(ctx context.Context, session *azservicebus.SessionReceiver) {
	for {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		batch, err := session.ReceiveMessages(wait, 1, nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || len(batch) == 0 {
			return
		}
		for _, m := range batch {
			var data struct {
				AggregateVersion int64 `json:"aggregateVersion"`
				Sequence         int64 `json:"sequence"`
			}
			_ = json.Unmarshal(m.Body, &data) // a body that is no event shows up as a breach
			if err := session.CompleteMessage(context.WithoutCancel(ctx), m, nil); err != nil {
				return // it comes again
			}
			c.mu.Lock()
			c.messages = append(c.messages, verify.Message{ID: m.MessageID, Session: *m.SessionID, Subject: *m.Subject, Version: data.AggregateVersion, Sequence: data.Sequence})
			c.mu.Unlock()
		}
	}
}

// DuplicatesDropped is how many messages the topic has accepted and dropped.
func (e Endpoints) DuplicatesDropped(t *testing.T) int64 {
	t.Helper()
	resp, err := http.Get(e.ServiceBusAdmin + "/$counters/" + e.Topic)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var c struct{ Duplicates int64 }
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("counters of %s: status %d, %v", e.Topic, resp.StatusCode, err)
	}
	return c.Duplicates
}
