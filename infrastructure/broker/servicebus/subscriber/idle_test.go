package subscriber

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/consumer"
)

func TestOptionsHaveTheDocumentedDefaults(t *testing.T) {
	inbox := consumer.NewMemoryInbox(0)
	sessions, plain := SessionOptions{Inbox: inbox}, Options{}
	if err := errors.Join(sessions.complete(), plain.complete()); err != nil {
		t.Fatal(err)
	}
	want := SessionOptions{Inbox: inbox, Sessions: 8, Prefetch: 16, SessionIdle: time.Second, SessionMax: time.Minute, GapDeliveries: 3, Attempts: 10}
	if !reflect.DeepEqual(sessions, want) {
		t.Errorf("with sessions %+v, want %+v", sessions, want)
	}
	if want := (Options{Concurrency: 8, Prefetch: 16}); !reflect.DeepEqual(plain, want) {
		t.Errorf("without sessions %+v, want %+v", plain, want)
	}
}

// A session may receive an event before it notices its eviction. It must not be evicted for that reason
// when it is idle again.
func TestEventBeforeEvictionKeepsTheSession(t *testing.T) {
	p := &SessionProcessor{opts: SessionOptions{Sessions: 1}}
	evicted := func(h *heldSession) bool {
		select {
		case <-h.evicted:
			return true
		default:
			return false
		}
	}
	first, second, third := new(heldSession), new(heldSession), new(heldSession)
	place := p.addIdle(first)
	p.addIdle(second)
	if !evicted(first) || evicted(second) {
		t.Fatal("two idle sessions with a limit of one: want the first evicted")
	}
	p.removeIdle(place) // for an event
	p.addIdle(first)
	if evicted(first) || !evicted(second) {
		t.Fatal("want the session evicted that has been idle for longer")
	}
	p.addIdle(third)
	if !evicted(first) || evicted(third) {
		t.Error("want the first session evicted, which has been idle for longest")
	}
}

// Names of Service Bus are the same in any case. A letter that was sent again must not be dropped by its own
// subscription.
func TestResubmissionNamesItsSubscriptionInAnyCase(t *testing.T) {
	for to, want := range map[string]struct {
		resubmission string
		foreign      bool
	}{
		"contacts/Subscriptions/billing": {resubmission: "again"},
		"Contacts/Subscriptions/Billing": {resubmission: "again"},
		"CONTACTS/Subscriptions/mail":    {foreign: true},
		"orders/Subscriptions/billing":   {},
	} {
		source := Subscription("contacts", "billing")
		e := newEvent(source, "k", &amqp.Message{ApplicationProperties: map[string]any{
			consumer.PropertyResubmission: "again", consumer.PropertyEventID: "e1", consumer.PropertyResubmittedTo: to,
		}})
		if foreign := isForOtherSubscription(source, e); e.Resubmission != want.resubmission || foreign != want.foreign || e.ID != "e1" {
			t.Errorf("sent again to %s: resubmission %q of event %q, foreign %t; want %+v", to, e.Resubmission, e.ID, foreign, want)
		}
	}
}
