package wiring

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
	rabbitmqdoctor "feedbox/infrastructure/broker/rabbitmq/doctor"
	servicebusdoctor "feedbox/infrastructure/broker/servicebus/doctor"
	sqsdoctor "feedbox/infrastructure/broker/sqs/doctor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayfeed"
	"feedbox/infrastructure/store/document"
	firestoredoctor "feedbox/infrastructure/store/firestore/doctor"
	postgresdoctor "feedbox/infrastructure/store/postgres/doctor"
)

// brokenBroker fails with its fault, and records accepted events.
type brokenBroker struct {
	mu    sync.Mutex // guards the fields below
	fault error
	calls int
	got   []string
}

func (b *brokenBroker) Publish(_ context.Context, groups []relay.Group) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.fault != nil {
		return b.fault
	}
	for _, g := range groups {
		for i := range g.Messages {
			b.got = append(b.got, strings.Clone(g.Messages[i].ID))
		}
	}
	return nil
}

func (b *brokenBroker) repair() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = nil
}

func (b *brokenBroker) count() (calls, accepted int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls, len(b.got)
}

// startProcess runs a relay and a processor with the production wiring, on stores in memory,
// until the test ends.
func startProcess(t *testing.T, b *brokenBroker, events int) *parkedtest.Memory {
	t.Helper()
	container, lot := memfeed.New(nil), parkedtest.NewMemory()
	for i := range events {
		container.Put(memfeed.Document{
			Key: "k", ID: fmt.Sprint("e", i), Data: map[string]any{"action": "ContactNameUpdatedEvent", "sequence": i + 1},
			More: map[string]any{"partitionKey": "k", "type": "domainEvent"},
		})
	}
	r, err := relay.New(document.EventDecoder{}, b, &relay.Options{Parked: lot, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	h := relayfeed.NewHandler(r)
	p, err := changefeed.New(container, memstore.New(nil), h, &changefeed.Options{
		Processor: "relay", Host: "a", Start: start(config.Start{}), Lanes: 4, Poison: changefeed.PoisonDeadLetter, DeadLetter: h.Park,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return lot
}

// An outage of the broker spends no attempts: after two hours no key is parked, and all
// events are sent in order once the broker is back.
func TestBrokerOutageParksNothing(t *testing.T) {
	for _, class := range []relay.Class{relay.Outage, relay.Blocked} {
		t.Run(class.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &brokenBroker{fault: &relay.Error{Class: class, Reason: "test", Err: errors.New("away")}}
				lot := startProcess(t, b, 3)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				calls, _ := b.count()
				if closed, err := lot.Closed(t.Context()); err != nil || len(closed) > 0 {
					t.Errorf("after an outage the keys %q are parked (%v)", closed, err)
				}
				b.repair()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if _, accepted := b.count(); calls < 100 || strings.Join(b.got, " ") != "e0 e1 e2" {
					t.Errorf("%d calls during the outage, then %d accepted: %q; want e0 e1 e2", calls, accepted, b.got)
				}
			})
		})
	}
}

// A message that the broker refuses is parked with the later events of its key. It is
// neither dropped nor retried forever.
func TestRefusedMessageIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &brokenBroker{fault: relay.Refuse("too_large", "too large")}
		lot := startProcess(t, b, 3)
		time.Sleep(time.Hour)
		synctest.Wait()
		line, err := lot.First(t.Context(), "k", 10, 1<<30)
		if err != nil || len(line) != 3 || line[0].ID != "e0" || line[0].Reason != "too_large" || line[1].Reason != "held" {
			t.Errorf("parked %+v (%v), want e0 refused and its followers held", line, err)
		}
		calls, _ := b.count()
		time.Sleep(time.Hour)
		synctest.Wait()
		if later, _ := b.count(); later != calls {
			t.Errorf("%d more calls in the next hour", later-calls)
		}
	})
}

// Each doctor shows the checks that depend on its first one, which fails here, as unknown.
func TestChecksAfterAFailedOneAreUnknown(t *testing.T) {
	queue := config.RabbitMQ{Exchange: "events"}
	if err := queue.URL.UnmarshalText([]byte("amqp://u:p@127.0.0.1:1/")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		examine func(step func(operator.Examination) bool)
		want    []string
	}{
		"PostgreSQL": {func(step func(operator.Examination) bool) {
			(postgresdoctor.Doctor{}).Examine(operator.ProcessRelay, step)
		}, []string{"rights", "clock", "open transactions", "events", "leases of all processors"}},
		"PostgreSQL, API": {func(step func(operator.Examination) bool) {
			(postgresdoctor.Doctor{}).Examine(operator.ProcessAPI, step)
		}, []string{"rights", "clock", "open transactions", "events"}},
		"Firestore": {func(step func(operator.Examination) bool) {
			(firestoredoctor.Doctor{}).Examine(operator.ProcessRelay, step)
		}, []string{"clock", "lifetimes"}},
		"Service Bus": {func(step func(operator.Examination) bool) {
			servicebusdoctor.New(config.ServiceBus{Topic: "contacts"}, nil, nil).Examine(step, "", time.Minute)
		}, []string{"send to topic contacts", "topic settings"}},
		"RabbitMQ": {func(step func(operator.Examination) bool) {
			rabbitmqdoctor.New(queue, nil, "billing:2").Examine(step, "", time.Minute)
		}, []string{"exchange events", "group billing:2"}},
		"SNS": {func(step func(operator.Examination) bool) {
			sqsdoctor.NewTopic(config.SNS{TopicARN: "arn:aws:sns:eu-west-1:123456789012:events.fifo"}, nil, nil).Examine(step, "", time.Minute)
		}, []string{"subscriptions"}},
	} {
		var got []string
		first := true
		c.examine(func(e operator.Examination) bool {
			if first {
				first = false
				return false
			}
			for _, f := range e(t.Context()) {
				if f.Status != operator.FindingUnknown || f.Next == "" {
					t.Errorf("%s: %+v, want unknown with advice", name, f)
				}
				got = append(got, f.Check)
			}
			return true
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
