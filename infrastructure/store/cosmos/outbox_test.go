package cosmos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
)

// invoice is a document of a service without aggregates.
type invoice struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
	Type   int    `json:"type"` // not of the kind that our own documents have
}

func newOutbox(t *testing.T) (*world, *cosmos.Outbox) {
	t.Helper()
	w := newWorld(t, worldOptions{})
	o, err := cosmos.NewOutbox(w.container, &cosmos.OutboxOptions{Options: cosmos.Options{Backoff: -1}})
	must(t, err)
	return w, o
}

// item reads a stored document.
func (w *world) item(key, id string) map[string]any {
	w.t.Helper()
	reply, err := w.container.ReadItem(w.t.Context(), partition(key), id, nil)
	must(w.t, err)
	var members map[string]any
	must(w.t, json.Unmarshal(reply.Value, &members))
	return members
}

func TestBatchStoresDocumentsAndEventsTogether(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	done, err := outbox.Batch("customer-7").
		Put(invoice{ID: "i1", Amount: 5}, "").
		EmitEvent(cosmos.Event{Action: "InvoiceIssuedEvent", Data: map[string]any{"amount": 5}, Sequence: 1, Version: 1, At: at}).
		Emit("LineAddedEvent", nil).Emit("LineAddedEvent", nil).
		Commit(t.Context())
	must(t, err)
	if done.ETags["i1"] == "" || len(done.ETags) != 1 || done.SessionToken == "" {
		t.Errorf("committed %+v", done)
	}
	if doc := w.item("customer-7", "i1"); doc["amount"] != 5.0 || doc["partitionKey"] != "customer-7" || doc["ttl"] != nil {
		t.Errorf("stored %v", doc)
	}
	events, err := storedEvents(t, w.container, "customer-7")
	must(t, err)
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	e := events[2] // those without a sequence come first
	if e.Action != "InvoiceIssuedEvent" || e.Sequence != 1 || e.AggregateVersion != 1 || !strings.Contains(string(e.Body), `"amount":5`) || e.CreatedAt != "2026-03-01T12:00:00Z" {
		t.Errorf("event %+v %s", e, e.Body)
	}

	stale := done.ETags["i1"]
	second, err := outbox.Batch("customer-7").After(done.SessionToken).Put(invoice{ID: "i1", Amount: 6}, stale).Emit("InvoiceChangedEvent", nil).Commit(t.Context())
	must(t, err)
	if _, err = outbox.Batch("customer-7").Put(invoice{ID: "i1", Amount: 7}, stale).Emit("InvoiceChangedEvent", nil).Commit(t.Context()); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("a stale ETag: %v", err)
	}
	if _, err = outbox.Batch("customer-7").Put(invoice{ID: "i1"}, "").Commit(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("a taken id: %v", err)
	}
	_, err = outbox.Batch("customer-7").Delete("i1", second.ETags["i1"]).Emit("InvoiceDeletedEvent", nil).Commit(t.Context())
	must(t, err)
	if events, err = storedEvents(t, w.container, "customer-7"); err != nil || len(events) != 5 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if _, err := w.container.ReadItem(t.Context(), partition("customer-7"), "i1", nil); err == nil {
		t.Error("the deleted document is there")
	}
}

// A lost answer is resolved: the batch was stored once, and its ETags are read back.
func TestBatchIsStoredOnceIfItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]func(o *cosmos.Outbox) *cosmos.Batch{
		"with an event": func(o *cosmos.Outbox) *cosmos.Batch {
			return o.Batch("k").Put(invoice{ID: "i1", Amount: 5}, "").Emit("InvoiceIssuedEvent", nil)
		},
		"documents alone": func(o *cosmos.Outbox) *cosmos.Batch {
			return o.Batch("k").Put(invoice{ID: "i1", Amount: 5}, "").Put(invoice{ID: "i2"}, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, outbox := newOutbox(t)
			lost := false
			w.wire.follow(func(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
				reply, err := pass()
				if err == nil && !lost {
					lost = true
					_ = reply.Body.Close()
					return nil, io.ErrUnexpectedEOF
				}
				return reply, err
			})
			done, err := commit(outbox).Commit(t.Context())
			must(t, err)
			w.wire.follow(nil)
			if doc := w.item("k", "i1"); done.ETags["i1"] == "" || doc["_etag"] != done.ETags["i1"] || !lost {
				t.Errorf("committed %+v, stored %v", done, doc)
			}
		})
	}
}

// The request of a batch without events is lost, and another client does a part of the same. The
// batch is refused, because the rest of it was not stored.
func TestBatchIsNotStoredByAPartThatAnotherClientStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		own, other func(b *cosmos.Batch, etag string) *cosmos.Batch
	}{
		"both delete": {
			func(b *cosmos.Batch, etag string) *cosmos.Batch {
				return b.Delete("old", etag).Put(invoice{ID: "own"}, "")
			},
			func(b *cosmos.Batch, etag string) *cosmos.Batch { return b.Delete("old", etag) },
		},
		"both replace": {
			func(b *cosmos.Batch, etag string) *cosmos.Batch {
				return b.Put(invoice{ID: "old", Amount: 1}, etag).Put(invoice{ID: "own"}, "")
			},
			func(b *cosmos.Batch, etag string) *cosmos.Batch {
				return b.Put(invoice{ID: "old", Amount: 1}, etag).Put(invoice{ID: "others"}, "")
			},
		},
		"both create": {
			func(b *cosmos.Batch, _ string) *cosmos.Batch {
				return b.Put(invoice{ID: "new"}, "").Put(invoice{ID: "own"}, "")
			},
			func(b *cosmos.Batch, _ string) *cosmos.Batch {
				return b.Put(invoice{ID: "new"}, "").Put(invoice{ID: "others"}, "")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, outbox := newOutbox(t)
			done, err := outbox.Batch("k").Put(invoice{ID: "old"}, "").Commit(t.Context())
			must(t, err)
			w.wire.follow(once(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
				if _, err := test.other(outbox.Batch("k"), done.ETags["old"]).Commit(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
				return nil, io.ErrUnexpectedEOF
			}))
			_, err = test.own(outbox.Batch("k"), done.ETags["old"]).Commit(t.Context())
			if _, missing := w.container.ReadItem(t.Context(), partition("k"), "own", nil); err == nil && missing != nil {
				t.Errorf("the batch is acknowledged, and a document of it is not there: %v", missing)
			}
		})
	}
}

func TestWrongUseOfABatchIsAnError(t *testing.T) {
	t.Parallel()
	_, outbox := newOutbox(t)
	var none *cosmos.Batch
	var zero cosmos.Batch
	var noOutbox *cosmos.Outbox
	committed := func() *cosmos.Batch {
		b := outbox.Batch("k").Emit("E", nil)
		_, err := b.Commit(t.Context())
		must(t, err)
		return b
	}
	id := uuid.New()
	for name, test := range map[string]struct {
		batch *cosmos.Batch
		says  string
	}{
		"nil":                        {none.Put(invoice{ID: "i"}, "").Emit("E", nil), "not begun by Outbox.Batch"},
		"the zero batch":             {zero.Delete("i", "e").After(""), "not begun by Outbox.Batch"},
		"nil, committed":             {none, "not begun by Outbox.Batch"},
		"the zero batch, committed":  {new(cosmos.Batch), "not begun by Outbox.Batch"},
		"nil, with a session":        {none.After("0:-1#1"), "not begun by Outbox.Batch"},
		"no outbox":                  {noOutbox.Batch("k").Emit("E", nil), "NewOutbox"},
		"the zero outbox":            {new(cosmos.Outbox).Batch("k"), "NewOutbox"},
		"no key":                     {outbox.Batch("").Emit("E", nil), "partition key is empty"},
		"nothing":                    {outbox.Batch("k"), "nothing was put"},
		"committed twice":            {committed(), "committed already"},
		"more after the commit":      {committed().Emit("E", nil), "accepts no operations"},
		"a session after the commit": {committed().After(""), "accepts no operations"},
		"no id":                      {outbox.Batch("k").Put(struct{ A int }{1}, ""), "no member id"},
		"an empty id":                {outbox.Batch("k").Put(map[string]any{"id": ""}, ""), "no member id"},
		"an id that is a number":     {outbox.Batch("k").Put(map[string]any{"id": 7}, ""), "no member id"},
		"no object":                  {outbox.Batch("k").Put([]int{1}, ""), "not encoded as an object"},
		"nil for a document":         {outbox.Batch("k").Put(nil, ""), "not encoded as an object"},
		"what JSON cannot hold":      {outbox.Batch("k").Put(make(chan int), ""), "unsupported type"},
		"another key":                {outbox.Batch("k").Put(map[string]any{"id": "i", "partitionKey": "l"}, ""), "use a batch for each key"},
		"a key that is a number":     {outbox.Batch("7").Put(map[string]any{"id": "i", "partitionKey": 7}, ""), "use a batch for each key"},
		"a time JSON cannot hold":    {outbox.Batch("k").EmitEvent(cosmos.Event{Action: "E", At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}), "year"},
		"twice the same document":    {outbox.Batch("k").Put(invoice{ID: "i"}, "").Put(invoice{ID: "i"}, ""), "has an operation"},
		"deleted without an ETag":    {outbox.Batch("k").Delete("i", ""), "no ETag"},
		"no action":                  {outbox.Batch("k").Emit("", nil), "needs an action"},
		"a sequence below zero":      {outbox.Batch("k").EmitEvent(cosmos.Event{Action: "E", Sequence: -1}), "from 1 or 0"},
		"a version below zero":       {outbox.Batch("k").EmitEvent(cosmos.Event{Action: "E", Version: -1}), "from 1 or 0"},
		"an event twice":             {outbox.Batch("k").EmitEvent(cosmos.Event{Action: "E", ID: id}).EmitEvent(cosmos.Event{Action: "F", ID: id}), "emitted already"},
		"a member that is taken":     {outbox.Batch("k").Emit("E", map[string]any{"sequence": 3}), "name of the member is taken"},
		"a member of another case":   {outbox.Batch("k").Emit("E", struct{ ID string }{"x"}), "ID: the name of the member is taken"},
		"one that the event has":     {outbox.Batch("k").EmitEvent(cosmos.Event{Action: "E", Sequence: 1, Data: struct{ Sequence int }{}}), "Sequence: the name of the member is taken"},
		"data that is no object":     {outbox.Batch("k").Emit("E", 7), "not encoded as an object"},
		"a session that is none":     {outbox.Batch("k").After("?").Emit("E", nil), "session"},
	} {
		if _, err := test.batch.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: %v; want one fault with %q", name, err, test.says)
		}
	}
	free := struct { // the event has none of these
		AggregateID, RequestHash   string
		Sequence, AggregateVersion int
	}{"a", "b", 1, 2}
	if _, err := outbox.Batch("k").Emit("E", free).Commit(t.Context()); err != nil {
		t.Errorf("members that nothing adds: %v", err)
	}
	if _, err := cosmos.NewOutbox(nil, nil); err == nil {
		t.Error("an outbox without a container")
	}
	if _, err := outbox.Batch("k").Put(invoice{ID: "big", Amount: 1}, "").Emit("E", strings.Repeat("x", 3<<20)).Commit(t.Context()); err == nil {
		t.Error("data that is a text")
	}
	_, err := outbox.Batch("k").Put(map[string]any{"id": "big", "text": strings.Repeat("x", 3<<20)}, "").Commit(t.Context())
	if !fault.Is(err, fault.TooLarge) || errors.Is(err, io.EOF) {
		t.Errorf("a document of 3 MB: %v", err)
	}
}

// An event that the broker would refuse is refused at commit, by a text with its size, the limit and the
// remedy. Otherwise the relay would park its key.
func TestEventAboveTheLimitOfTheBrokerIsRefusedAtCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	options := cosmos.Options{Backoff: -1, MaxEventBytes: 600}
	outbox, err := cosmos.NewOutbox(w.container, &cosmos.OutboxOptions{Options: options})
	must(t, err)
	work, err := cosmos.NewUnitsOfWork(w.container, basketKind().Kind(), nil, &options)
	must(t, err)
	baskets := &command.Service[*basket]{Work: work, IDs: uuid.New, Now: time.Now, Noun: "basket"}
	opened, err := baskets.Create(t.Context(), opening(""))
	must(t, err)
	for name, commit := range map[string]func(length int) error{
		"documents": func(length int) error {
			_, err := outbox.Batch("k").Emit("E", map[string]any{"text": strings.Repeat("x", length)}).Commit(t.Context())
			return err
		},
		"aggregates": func(length int) error {
			_, err := baskets.Update(t.Context(), command.Target{ID: opened.Aggregate.ID()}, func(b *basket) error { b.add(strings.Repeat("x", length)); return nil })
			return err
		},
	} {
		must(t, commit(200))
		err := commit(600)
		refusal, ok := errors.AsType[*fault.Error](err)
		if !ok || refusal.Kind != fault.TooLarge || refusal.Code != "event_too_large" || !regexp.MustCompile(`event .* is [6-9]\d\d bytes long, and the broker accepts 600: store large data elsewhere and refer to it`).MatchString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Service Bus refuses the session of a longer key, and the relay would park it. Documents without events have no session.
func TestKeyAboveTheLimitOfTheBrokerIsRefusedAtCommit(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	unlimited, err := cosmos.NewOutbox(w.container, &cosmos.OutboxOptions{MaxKeyLength: -1})
	must(t, err)
	long := strings.Repeat("ä", 128)
	for name, b := range map[string]*cosmos.Batch{
		"128 characters": outbox.Batch(long).Emit("E", nil), "a document alone": outbox.Batch(long+"x").Put(invoice{ID: "i"}, ""), "no limit": unlimited.Batch(long+"x").Emit("E", nil),
	} {
		if _, err := b.Commit(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = outbox.Batch(long+"x").Emit("E", nil).Commit(t.Context())
	refusal, ok := errors.AsType[*fault.Error](err)
	if !ok || refusal.Kind != fault.Invalid || refusal.Code != "key_too_long" || !strings.Contains(err.Error(), "129 characters") || !strings.Contains(err.Error(), "MaxKeyLength") {
		t.Errorf("129 characters: %v", err)
	}
}

func partition(key string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(key) }

// A Commit that failed may be called again and sends the same.
func TestBatchIsCommittedAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	w.wire.follow(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	})
	began := time.Now().Add(-time.Second)
	b := outbox.Batch("k").Put(invoice{ID: "i1"}, "").Emit("E", nil).Emit("F", nil)
	if _, err := b.Commit(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("without a store: %v", err)
	}
	w.wire.follow(nil)
	_, err := b.Commit(t.Context())
	must(t, err)
	events, err := storedEvents(t, w.container, "k")
	must(t, err)
	if len(events) != 2 {
		t.Fatalf("%d events, want 2", len(events))
	}
	for _, e := range events {
		if at, err := time.Parse(time.RFC3339Nano, e.CreatedAt); err != nil || at.Before(began) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("event created at %s, want now", e.CreatedAt)
		}
	}
}

// The session token of a commit covers the earlier token of the caller and the commit, of a batch
// and of one document.
func TestBatchReturnsItsSession(t *testing.T) {
	t.Parallel()
	_, outbox := newOutbox(t)
	first, err := outbox.Batch("k").Put(invoice{ID: "i1"}, "").Commit(t.Context())
	must(t, err)
	if first.SessionToken == "" {
		t.Error("the commit of one document has no session token")
	}
	ahead := "7:-1#99"
	done, err := outbox.Batch("k").After(ahead).Put(invoice{ID: "i2"}, "").Emit("E", nil).Commit(t.Context())
	must(t, err)
	if !strings.Contains(done.SessionToken, ahead) || done.SessionToken == ahead {
		t.Errorf("session token %q, want %q and the commit's", done.SessionToken, ahead)
	}
}

// In a container with another partition key path, the key is in that member.
// The session of a batch covers all tokens that were given, in any order.
func TestBatchKeepsEachTokenThatItWasGiven(t *testing.T) {
	t.Parallel()
	for _, tokens := range [][]string{{"0:-1#900", "7:-1#5"}, {"7:-1#5", "0:-1#900"}, {"0:-1#900", "0:-1#3", "7:-1#5"}, {"7:-1#5,0:-1#900", "", "7:-1#4"}} {
		_, outbox := newOutbox(t)
		batch := outbox.Batch("k")
		for _, token := range tokens {
			batch.After(token)
		}
		done, err := batch.Put(invoice{ID: "i"}, "").Emit("E", nil).Commit(t.Context())
		must(t, err)
		if done.SessionToken != "0:-1#900,7:-1#5" {
			t.Errorf("after %q the session is %s, want the latest token of each range", tokens, done.SessionToken)
		}
	}
	// Tokens that are too long together are refused, because one of them would be lost.
	many := func(from int) string {
		var ranges []string
		for n := range 60 {
			ranges = append(ranges, fmt.Sprintf("%d:-1#1", from+n))
		}
		return strings.Join(ranges, ",")
	}
	_, outbox := newOutbox(t)
	_, err := outbox.Batch("k").After(many(0)).After(many(100)).After(many(200)).Emit("E", nil).Commit(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the session tokens together") {
		t.Errorf("%v, want an error about the tokens", err)
	}
}

func TestOutboxDocuments(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "tenants", PartitionKey: []string{"/tenant"}, DefaultTTL: -1}))
	var err error
	w.container, err = w.client.NewContainer("contacts", "tenants")
	must(t, err)
	outbox, err := cosmos.NewOutbox(w.container, &cosmos.OutboxOptions{KeyMember: "tenant", Options: cosmos.Options{
		EventTTL: time.Minute, Traceparent: func(context.Context) string { return trace },
	}})
	must(t, err)
	id := uuid.New()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	done, err := outbox.Batch("k").
		Put(map[string]any{"id": "a"}, "").Put(map[string]any{"id": "b", "tenant": "k"}, "").
		EmitEvent(cosmos.Event{ID: id, Action: "E", Sequence: 2, Version: 3, At: at, Data: map[string]any{"n": 1}}).
		Commit(t.Context())
	must(t, err)
	if done.ETags["a"] == "" || done.ETags["b"] == "" || len(done.ETags) != 2 {
		t.Errorf("ETags %v", done.ETags)
	}
	for doc, want := range map[string]map[string]any{
		"a": {"id": "a", "tenant": "k"},
		"b": {"id": "b", "tenant": "k"},
		id.String(): {"id": id.String(), "tenant": "k", "type": "domainEvent", "ttl": 60.0, "data": map[string]any{
			"n": 1.0, "action": "E", "id": id.String(), "createdAt": "2026-03-01T12:00:00Z", "aggregateVersion": 3.0, "sequence": 2.0, "ordinal": 1.0,
			"schemaVersion": 1.0, "traceparent": trace,
		}},
	} {
		got := w.item("k", doc)
		maps.DeleteFunc(got, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", doc, diff)
		}
	}
}

// A single deletion is also guarded by the ETag.
func TestBatchOfOneDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	outbox, err := cosmos.NewOutbox(w.container, nil)
	must(t, err)
	first, err := outbox.Batch("k").Put(invoice{ID: "i1"}, "").Commit(t.Context())
	must(t, err)
	second, err := outbox.Batch("k").Put(invoice{ID: "i1", Amount: 1}, first.ETags["i1"]).Commit(t.Context())
	must(t, err)
	if _, err = outbox.Batch("k").Delete("i1", first.ETags["i1"]).Commit(t.Context()); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("a stale ETag: %v", err)
	}
	done, err := outbox.Batch("k").Delete("i1", second.ETags["i1"]).Commit(t.Context())
	if err != nil || len(done.ETags) != 0 || done.SessionToken == "" {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := outbox.Batch("k").Delete("i1", second.ETags["i1"]).Commit(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
}

// A container that cannot hold an outbox is named at the first commit, with the remedy. It is not
// a document that is missing, which callers answer with 404.
func TestCommitNamesAnUnfitContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "tenants", PartitionKey: []string{"/tenant"}, DefaultTTL: -1}))
	for id, want := range map[string]string{
		"absent":  `the container "absent" does not exist: create it with the partition key /partitionKey`,
		"tenants": `the container "tenants" has the partition key [/tenant], it needs /partitionKey`,
	} {
		container, err := w.client.NewContainer("contacts", id)
		must(t, err)
		outbox, err := cosmos.NewOutbox(container, &cosmos.OutboxOptions{Options: cosmos.Options{Backoff: -1}})
		must(t, err)
		_, err = outbox.Batch("k").Put(invoice{ID: "i1"}, "").Emit("E", nil).Commit(t.Context())
		if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an internal fault with %q", id, err, want)
		}
	}
}

func TestVerifyOfOutboxRefusesAnUnfitContainer(t *testing.T) {
	t.Parallel()
	w, outbox := newOutbox(t)
	must(t, outbox.Verify(t.Context()))
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "tenants", PartitionKey: []string{"/tenant"}}))
	tenants, err := w.client.NewContainer("contacts", "tenants")
	must(t, err)
	for member, want := range map[string][]string{
		"":       {"needs /partitionKey: create it again", "events never expire", "az cosmosdb sql container update --name tenants --ttl -1"},
		"tenant": {"events never expire"},
	} {
		outbox, err := cosmos.NewOutbox(tenants, &cosmos.OutboxOptions{KeyMember: member})
		must(t, err)
		err = outbox.Verify(t.Context())
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v; want %q", member, err, part)
			}
		}
		if member == "tenant" && err != nil && strings.Contains(err.Error(), "partition key") {
			t.Errorf("%v; the partition key is as required", err)
		}
	}
	if err := (&cosmos.Outbox{}).Verify(t.Context()); err == nil {
		t.Error("the zero outbox is accepted")
	}
}
