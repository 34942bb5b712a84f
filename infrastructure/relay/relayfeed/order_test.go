package relayfeed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/relay/relayfeed"
	"feedbox/infrastructure/store/document"
)

// picky is a broker that refuses one event and accepts those of its key before it.
type picky struct {
	mu  sync.Mutex // guards the fields below
	bad string
	got []string
}

func (b *picky) Publish(_ context.Context, groups []relay.Group) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var failed relay.PublishError
	for i, g := range groups {
		for n := range g.Messages {
			if g.Messages[n].ID == b.bad {
				failed.Keys = append(failed.Keys, relay.KeyError{Group: i, Sent: n, Err: relay.Refuse("too_large", "too large")})
				break
			}
			b.got = append(b.got, strings.Clone(g.Messages[n].ID))
		}
	}
	if len(failed.Keys) > 0 {
		return &failed
	}
	return nil
}

// The feed returns the events of a transaction in any order. They are sent in the order of their
// ordinals, else of their sequences, else of their ids, also if the first or the last of them is
// refused, parked and drained.
func TestTransactionKeepsItsOrder(t *testing.T) {
	for name, transaction := range map[string][]map[string]any{
		"ordinals":  {{"id": "e2", "ordinal": 3}, {"id": "e3", "ordinal": 1}, {"id": "e1", "ordinal": 2}},
		"sequences": {{"id": "e2", "sequence": 3}, {"id": "e3", "sequence": 1}, {"id": "e1", "sequence": 2}},
		"ids":       {{"id": "e2"}, {"id": "e3"}, {"id": "e1"}},
	} {
		order := "e3 e1 e2"
		if name == "ids" {
			order = "e1 e2 e3"
		}
		for _, bad := range []string{"none", "e1", "e2", "e3"} {
			t.Run(name+", refused "+bad, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, container, mem := &picky{bad: bad}, memfeed.New(nil), parkedtest.NewMemory()
					var docs []memfeed.Document
					for _, e := range transaction {
						data := map[string]any{"action": "X"}
						for member, value := range e {
							if member != "id" {
								data[member] = value
							}
						}
						docs = append(docs, memfeed.Document{Key: "k", ID: e["id"].(string), Data: data, More: map[string]any{"partitionKey": "k", "type": "domainEvent"}})
					}
					container.Put(docs...)
					r, err := relay.New(document.EventDecoder{}, b, &relay.Options{Parked: mem})
					if err != nil {
						t.Fatal(err)
					}
					h := relayfeed.NewHandler(r)
					p, err := changefeed.New(container, memstore.New(nil), h, &changefeed.Options{
						Host: "a", Lanes: 4, Poison: changefeed.PoisonDeadLetter, DeadLetter: h.Park, Observer: &changefeed.Observer{},
					})
					if err != nil {
						t.Fatal(err)
					}
					d, err := relay.NewDrainer(mem, relayfeed.Ranges{Processor: p}, r, relay.DrainOptions{})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					var running sync.WaitGroup
					running.Go(func() { _ = p.Run(ctx) })
					time.Sleep(time.Minute)
					b.mu.Lock()
					b.bad = ""
					b.mu.Unlock()
					_, err = mem.SetIntent(t.Context(), "k", relay.Intent{Verb: relay.VerbRetry})
					if isParked := err == nil; isParked == (bad == "none") {
						t.Errorf("parked: %t", isParked)
					}
					running.Go(func() { _ = d.Run(ctx) })
					time.Sleep(time.Minute)
					cancel()
					running.Wait()
					if got := strings.Join(b.got, " "); got != order {
						t.Errorf("sent %q, want %q", got, order)
					}
				})
			})
		}
	}
}

// An unknown failure does not park an event, however many other documents are handled. An ambiguous refusal
// counts as an attempt, also once its key is blamed.
func TestRefusalsCountAndUnknownFailuresWait(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		others string // type of the other documents: events are accepted
		letter string
	}{
		"unknown failure": {errors.New("no answer"), "note", ""},
		"outage of a key": {&relay.Error{Class: relay.Outage, Reason: "busy"}, "domainEvent", "waiting true"}, // its second event waits for the first
		"refusal":         {&relay.Error{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}, "domainEvent", "after 3 attempts, waiting false"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				container, letter := memfeed.New(nil), ""
				put := func(key, id, kind string) {
					container.Put(memfeed.Document{Key: key, ID: id, Data: map[string]any{"action": "X"}, More: map[string]any{"partitionKey": key, "type": kind}})
				}
				r, err := relay.New(document.EventDecoder{}, failingKey{"bad", c.err}, nil)
				if err != nil {
					t.Fatal(err)
				}
				h := relayfeed.NewHandler(r)
				p, err := changefeed.New(container, memstore.New(nil), h, &changefeed.Options{
					Host: "a", MaxAttempts: 3, WaitLimit: 30 * time.Minute, Observer: &changefeed.Observer{}, Poison: changefeed.PoisonDeadLetter,
					RetryMin: 5 * time.Minute, RetryMax: 5 * time.Minute, // other events are accepted between two attempts
					DeadLetter: func(_ context.Context, l changefeed.DeadLetter) error {
						letter = fmt.Sprintf("after %d attempts, waiting %t", l.Attempts, l.Waiting)
						return nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = p.Run(ctx) })
				put("bad", "e1", "domainEvent")
				put("bad", "e2", "domainEvent")
				for n := range 60 {
					put("good", fmt.Sprint("g", n), c.others)
					time.Sleep(time.Minute)
				}
				cancel()
				running.Wait()
				if !strings.HasSuffix(letter, c.letter) || c.letter == "" && letter != "" {
					t.Errorf("dead letter %q, want %q", letter, c.letter)
				}
			})
		})
	}
}

// failingKey is a broker that fails one key.
type failingKey struct {
	key string
	err error
}

func (b failingKey) Publish(_ context.Context, groups []relay.Group) error {
	for i, g := range groups {
		if g.Key == b.key {
			return &relay.PublishError{Keys: []relay.KeyError{{Group: i, Err: b.err}}}
		}
	}
	return nil
}

// Missing events are lost for certain only if those before were handled.
func TestMissingEventsAreLostIfReadingIsResumed(t *testing.T) {
	t.Parallel()
	var missing []relay.Missing
	r, err := relay.New(aggregate{}, &picky{}, &relay.Options{Observer: relay.Observer{
		Missing: func(_ context.Context, m relay.Missing) { missing = append(missing, m) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := relayfeed.NewHandler(r)
	for epoch, resumed := range []bool{false, true, false} {
		batch := &changefeed.Batch{LeaseRef: changefeed.LeaseRef{Lease: "l", Epoch: int64(epoch)}, Items: make([]changefeed.Item, 1), Resumed: resumed}
		if err := h.Handle(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	var lost []bool
	for _, m := range missing {
		lost = append(lost, m.Lost)
	}
	if !slices.Equal(lost, []bool{false, true, false}) {
		t.Errorf("lost %v, want only the events of the ownership that was resumed", lost)
	}
}

// A page that was accepted is done, even if the context of the call ended with its last send. Otherwise all
// of its events would be sent again.
func TestAcceptedPageIsDoneAfterTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := relay.New(document.EventDecoder{}, publisherFunc(func() { cancel() }), nil)
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(`{"id":"e","partitionKey":"k","type":"domainEvent","data":{"action":"X"}}`)
	if err := relayfeed.NewHandler(r).Handle(ctx, &changefeed.Batch{Items: []changefeed.Item{{Raw: raw, LSN: 1}}}); err != nil || ctx.Err() == nil {
		t.Errorf("error %v, context %v; want no error of an accepted page", err, ctx.Err())
	}
}

// publisherFunc is a broker that accepts everything after a call.
type publisherFunc func()

func (f publisherFunc) Publish(context.Context, []relay.Group) error {
	f()
	return nil
}

// A parked event has the LSN of the feed. The id of an event without one contains it.
func TestParkedEventHasTheLSNOfTheFeed(t *testing.T) {
	t.Parallel()
	var parked []relay.ParkedEvent
	r, err := relay.New(document.EventDecoder{}, &picky{}, &relay.Options{Parked: parkedtest.NewMemory(), Observer: relay.Observer{
		Parked: func(_ context.Context, e relay.ParkedEvent) { parked = append(parked, e) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`{"id":"e","partitionKey":"a","type":"domainEvent"}`, `{"partitionKey":"b","type":"domainEvent"}`} {
		letter := changefeed.DeadLetter{Raw: []byte(raw), LSN: 7, Err: relay.Refuse("invalid_event", "no action")}
		if err := relayfeed.NewHandler(r).Park(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
	}
	if len(parked) != 2 || parked[0].LSN != 7 || parked[1].LSN != 7 || !strings.HasPrefix(parked[1].ID, "no-id-7-") {
		t.Errorf("parked %+v, want both with LSN 7", parked)
	}
}

// aggregate decodes each document as an aggregate with three events.
type aggregate struct{}

func (aggregate) Decode([]byte) (relay.Message, bool, error) {
	return relay.Message{Key: "k", Sequence: 3}, false, nil
}

func TestStoppedProcessorOwnsNoRange(t *testing.T) {
	t.Parallel()
	idle := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil })
	p, err := changefeed.New(memfeed.New(nil), memstore.New(nil), idle, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = relayfeed.Ranges{Processor: p}.Own(t.Context(), "k", func(context.Context) error { t.Error("was run"); return nil })
	if !errors.Is(err, relay.ErrNotOwned) || !errors.Is(err, changefeed.ErrNotOwned) {
		t.Errorf("error %v, want it to say that the range is not owned, with the cause", err)
	}
}

// An observer may keep what it is told, for example to write it to a log later. The documents are
// slices of a page, whose memory is reused.
func TestReportsOutliveTheDocuments(t *testing.T) {
	t.Parallel()
	var told []string
	keep := func(key, id string) { told = append(told, key, id) }
	r, err := relay.New(document.EventDecoder{}, &picky{bad: "e4"}, &relay.Options{Parked: parkedtest.NewMemory(), Observer: relay.Observer{
		Missing: func(_ context.Context, m relay.Missing) { keep(m.Key, "") },
		Parked:  func(_ context.Context, e relay.ParkedEvent) { keep(e.Key, e.ID) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, sequence := range []int64{1, 4} {
		raw := fmt.Appendf(nil, `{"id":"e%d","partitionKey":"k","type":"domainEvent","data":{"action":"X","sequence":%d}}`, sequence, sequence)
		change := relay.Change{Raw: raw, LSN: sequence}
		for _, f := range r.Handle(t.Context(), relay.Ownership{Resumed: true}, []relay.Change{change}) {
			for range 2 { // the second time the store has it, and the relay tells of its own copy
				if err := r.Park(t.Context(), relay.DeadLetter{Change: change, Err: f.Err}); err != nil {
					t.Fatal(err)
				}
			}
		}
		clear(raw)
	}
	if got := strings.Join(told, " "); got != "k  k e4 k e4" {
		t.Errorf("told %q", got)
	}
}
