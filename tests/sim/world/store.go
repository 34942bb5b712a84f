package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/cosmos"
)

// ledger holds every event ever seen in the store, so that expired ones are known.
type ledger struct {
	mu     sync.Mutex // guards the fields below
	events map[string]verify.Event
}

// keepLedger reads the store, without network faults, often enough that no event expires unseen.
func (w *World) keepLedger() {
	tick := time.NewTicker(w.topology.EventTTL / 8)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, events := w.stored()
			w.ledger.mu.Lock()
			for _, e := range events {
				w.ledger.events[e.ID] = e
			}
			w.ledger.mu.Unlock()
		case <-w.ctx.Done():
			return
		}
	}
}

// readEvents reads all change feeds from their beginning and adds the events to the ledger, with
// their positions.
func (w *World) readEvents() error {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	client, done, err := w.client()
	if err != nil {
		return err
	}
	defer done()
	for _, o := range w.outboxes {
		if err := w.readFeed(client, o.data); err != nil {
			return err
		}
	}
	return nil
}

// readFeed reads the change feed of a container. The ledger's mutex is held.
func (w *World) readFeed(client *azcosmos.Client, container string) error {
	feed, err := cosmosfeed.NewFeed(client, Database, container)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
	defer cancel()
	ranges, err := w.Cosmos().PartitionKeyRanges(Database, container)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		for at := ""; ; {
			page, err := feed.Read(ctx, changefeed.ReadRequest{
				Range: changefeed.FeedRange{Min: r.MinInclusive, Max: r.MaxExclusive}, Continuation: at, MaxItems: 1000,
			})
			if err != nil {
				return err
			}
			for i := range page.Items {
				w.ledger.add(container, &page.Items[i])
			}
			at = page.Continuation
			if page.Release != nil {
				page.Release()
			}
			if page.CaughtUp || len(page.Items) == 0 {
				break
			}
		}
	}
	return nil
}

// add adds an event of a feed. It ignores poison events.
func (l *ledger) add(feed string, item *changefeed.Item) {
	d, err := verify.DecodeDocument(item.Raw)
	if err != nil || d.Kind != verify.KindEvent {
		return
	}
	e := d.Event()
	e.Feed, e.LSN, e.EPK = feed, item.LSN, EPK(e.Key)
	l.events[e.ID] = e
}

// client returns a client of the store for the world itself. Faults of the store affect it, faults
// of processes do not. done ends it.
func (w *World) client() (client *azcosmos.Client, done func(), err error) {
	n := newNIC(w.network)
	client, end, err := w.clientOf(n)
	return client, func() {
		n.kill()
		end()
	}, err
}

// clientOf returns a client of the store for a process. done ends it.
func (w *World) clientOf(n *nic) (client *azcosmos.Client, done func(), err error) {
	transport := w.transport(n)
	client, err = cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: w.endpoint(), Key: w.Cosmos().Key(), Options: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	if err != nil {
		return nil, transport.CloseIdleConnections, err
	}
	return client, func() {
		client.Close()
		transport.CloseIdleConnections()
	}, nil
}

// Insert stores a document in the data container directly, without the API. It retries until the
// document is stored or the world ends.
func (w *World) Insert(key string, document []byte) error {
	client, done, err := w.client()
	if err != nil {
		return err
	}
	defer done()
	data, err := client.NewContainer(Database, Data)
	if err != nil {
		return err
	}
	for {
		err := w.insert(data, key, document)
		if failed, ok := errors.AsType[*azcore.ResponseError](err); err == nil || ok && failed.StatusCode == http.StatusConflict {
			return nil
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-timer.C:
		case <-w.ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (w *World) insert(data *azcosmos.ContainerClient, key string, document []byte) error {
	ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
	defer cancel()
	_, err := data.CreateItem(ctx, azcosmos.NewPartitionKeyString(key), document, nil)
	return err
}

// Poison stores an event that no relay can send, followed by n valid events of the same key, which
// is not that of a contact. Exactly these must be parked in the end (I8).
func (w *World) Poison(name string, n int) error {
	key := "poison-" + name
	for i := range n + 1 {
		id := fmt.Sprintf("%s-%d", key, i)
		w.mu.Lock()
		w.poison[id] = true
		w.mu.Unlock()
		data := `{"action":"ContactCreatedEvent","sequence":` + fmt.Sprint(i+1) + `,"aggregateVersion":1}`
		if i == 0 {
			data = `{"sequence":"one"}`
		}
		document := fmt.Sprintf(`{"id":%q,"partitionKey":%q,"type":"domainEvent","data":%s,"ttl":-1}`, id, key, data)
		if err := w.Insert(key, []byte(document)); err != nil {
			return fmt.Errorf("insert %s: %w", id, err)
		}
	}
	w.trace.Add("world", "POISON under %s", key)
	return nil
}

// poisoned returns the ids of poison events and the events after them.
func (w *World) poisoned() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.poison)
}

// raw reads a container without the network; nothing while the store is down.
func (w *World) raw(container string) (raw [][]byte) {
	w.cosmos.look(func(srv *cosmosemu.Server) {
		var err error
		if raw, err = srv.Items(Database, container); err != nil {
			w.harness("read %s: %v", container, err)
		}
	})
	return raw
}

// items reads a container without the network. It includes damaged documents with their readable
// fields, because they must not get lost either.
func (w *World) items(container string) []verify.Document {
	raw := w.raw(container)
	docs := make([]verify.Document, 0, len(raw))
	for _, r := range raw {
		if d, _ := verify.DecodeDocument(r); d.ID != "" {
			docs = append(docs, d)
		}
	}
	return docs
}

// leases reads the leases of an outbox without the network.
func (w *World) leases(o outbox) []leaseDocument {
	var live []leaseDocument
	for _, r := range w.raw(o.leases) {
		var l leaseDocument
		if json.Unmarshal(r, &l) == nil && l.LeaseToken != "" {
			live = append(live, l)
		}
	}
	return live
}

// stored reads the aggregates and events in the store without the network. Poison events are left
// out.
func (w *World) stored() (aggregates []verify.Aggregate, events []verify.Event) {
	poison := w.poisoned()
	for _, o := range w.outboxes {
		for _, d := range w.items(o.data) {
			switch {
			case poison[d.ID]:
			case d.Kind == verify.KindAggregate:
				aggregates = append(aggregates, d.Aggregate())
			case d.Kind == verify.KindEvent:
				events = append(events, d.Event())
			}
		}
	}
	return aggregates, events
}

// parked lists the ids of the parked events. The simulation never skips any.
func (w *World) parked() map[string]bool {
	ids := map[string]bool{}
	for _, o := range w.outboxes {
		for _, d := range w.items(o.parked) {
			if d.Kind == verify.KindParked {
				ids[d.ID] = true
			}
		}
	}
	return ids
}

// archived lists the accepted messages in order.
func (w *World) archived() []verify.Message {
	peeked, err := w.Bus().Peek(archivePath, everything)
	if err != nil {
		return nil
	}
	slices.SortFunc(peeked, func(a, b busemuMessage) int { return int(a.SequenceNumber - b.SequenceNumber) })
	messages := make([]verify.Message, 0, len(peeked))
	for i := range peeked {
		p := &peeked[i]
		m := verify.Message{ID: p.ID, Subject: p.Subject}
		if p.Session != nil {
			m.Session = strings.Clone(*p.Session)
		}
		var body struct {
			AggregateVersion int64 `json:"aggregateVersion"`
			Sequence         int64 `json:"sequence"`
		}
		_ = json.Unmarshal(p.Body, &body) // a body that is not an event is a violation later
		m.Version, m.Sequence = body.AggregateVersion, body.Sequence
		messages = append(messages, m)
	}
	return messages
}
