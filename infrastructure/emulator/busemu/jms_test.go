package busemu

import (
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

func TestSQLOfSelector(t *testing.T) {
	for selector, want := range map[string]string{
		"n > 1 AND JMSType = 'x'":             "n > 1 AND sys.Label = 'x'",
		"s = 'it''s JMSType' OR JMSMessageID": "s = 'it''s JMSType' OR sys.MessageId",
		"JMSXGroupID='a' or myJMSType=2":      "sys.SessionId='a' or myJMSType=2",
		"s = 'open":                           "s = 'open",
		"":                                    "",
	} {
		if got, err := sqlOfSelector(selector); err != nil || got != want {
			t.Errorf("%q became %q, %v; want %q", selector, got, err, want)
		}
	}
	if got, err := sqlOfSelector("JMSPriority > 1"); err == nil {
		t.Errorf("an unknown header became %q", got)
	}
}

// TestJMSSubscription: a consumer of a topic creates its subscription. One that is not durable
// is deleted with the consumer, a durable one when the client unsubscribes.
func TestJMSSubscription(t *testing.T) {
	t.Parallel()
	srv := startT(t, &Options{Topology: &Topology{Topics: []Topic{{Name: "t"}}}})
	p := newPeer(t, srv).open()
	attach := func(handle uint32, name string, source *amqp.Source) *amqp.Attach {
		p.send(0, &amqp.Attach{Name: name, Handle: handle, Role: amqp.RoleReceiver, Source: source, Target: &amqp.Target{}})
		return p.expect(amqp.CodeAttach).(*amqp.Attach)
	}
	subscriptions := func() (names []string) {
		all, err := srv.broker.Subscriptions("t")
		check(t, err)
		for _, s := range all {
			names = append(names, s.Name)
		}
		return names
	}
	topic := amqp.Some("t")
	durable := &amqp.Source{Address: topic, Durable: 2, ExpiryPolicy: "never", Capabilities: []amqp.Symbol{"topic"}, Filter: amqp.Map{{
		Key: amqp.Symbol("jms-selector"), Value: amqp.Described{Descriptor: amqp.Symbol(selectorFilter), Value: "JMSType = 'yes'"},
	}}}
	attach(0, "mine", durable)
	attach(1, "any", &amqp.Source{Address: topic, Capabilities: []amqp.Symbol{"topic"}})
	if got := subscriptions(); len(got) != 2 {
		t.Fatalf("there are %q", got)
	}
	check(t, srv.Send(t.Context(), "t", Message{ID: "1", Subject: "yes"}, Message{ID: "2", Subject: "no"}))
	p.grant(0, 0, 10, 0, 100, false)
	p.expect(amqp.CodeTransfer)
	p.quiet(amqp.CodeTransfer)
	for handle := range uint32(2) {
		p.send(0, &amqp.Detach{Handle: handle, Closed: handle == 1})
		p.expect(amqp.CodeDetach)
	}
	for until := time.Now().Add(time.Minute); len(subscriptions()) > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("left are %q", subscriptions())
		}
	}
	if a := attach(0, "mine", nil); a.Source == nil || a.Source.Address.Value != "t" {
		t.Fatalf("asked for the subscription: %+v", a)
	}
	p.send(0, &amqp.Detach{Handle: 0, Closed: true})
	p.expect(amqp.CodeDetach)
	if got := subscriptions(); len(got) != 0 {
		t.Errorf("left are %q", got)
	}
	if a := attach(0, "mine", nil); a.Source != nil {
		t.Errorf("a subscription that is gone: %+v", a)
	}
}

// TestDeliveryTime: JMS writes the time of a delayed delivery as a long.
func TestDeliveryTime(t *testing.T) {
	t.Parallel()
	c := newController(t)
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	annotations := amqp.AppendValue(amqp.AppendDescriptor(nil, amqp.CodeMessageAnnotations), amqp.Map{{Key: amqp.Symbol(annotationDeliveryTime), Value: at.UnixMilli()}})
	if s := c.deliver(toOut, nil, append(annotations, oneMessage...)); s.Code != amqp.CodeAccepted {
		t.Fatalf("sent with %+v", s)
	}
	got := must(c.srv.Peek("out", 1))(t)
	if len(got) != 1 || !got[0].ScheduledAt.Equal(at) {
		t.Errorf("it waits as %+v", got)
	}
}
