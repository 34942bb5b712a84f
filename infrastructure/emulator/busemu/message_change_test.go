package busemu

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// TestRuleActions: each matching rule with an action makes a changed copy of its own; the
// rules without share one unchanged copy.
func TestRuleActions(t *testing.T) {
	o := &Options{Topology: &Topology{Topics: []Topic{{Name: "t", Subscriptions: []Subscription{
		{Name: "one", Rules: []Rule{
			{Name: "a", Filter: Filter{Kind: SQLFilter, Expression: "n > 1"}},
			{Name: "b", Filter: Filter{Kind: TrueFilter}},
			{Name: "c", Filter: Filter{Kind: SQLFilter, Expression: "n = 2"}, Action: &Action{Expression: "SET n = n + 40; SET sys.Label = 'c'; REMOVE x"}},
		}},
		{Name: "other"},
	}}}}}
	bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, client *azservicebus.Client) {
		sender := must(client.NewSender("t", nil))(t)
		id := "m"
		check(t, sender.SendMessage(ctx, &azservicebus.Message{
			MessageID: &id, Body: []byte("body"), Subject: ptr("s"), ApplicationProperties: map[string]any{"n": int32(2), "x": 1.5},
		}, nil))
		take := func(sub string, n int) []*azservicebus.ReceivedMessage {
			r := must(client.NewReceiverForSubscription("t", sub, nil))(t)
			got := must(r.ReceiveMessages(ctx, n, allAtOnce))(t)
			for _, m := range got {
				check(t, r.CompleteMessage(ctx, m, nil))
			}
			check(t, r.Close(ctx))
			return got
		}
		got := take("one", 2)
		if m := got[0]; *m.Subject != "s" || m.ApplicationProperties["n"] != int32(2) || m.ApplicationProperties["x"] != 1.5 {
			t.Errorf("the copy without action has %s, %v", *m.Subject, m.ApplicationProperties)
		}
		m := got[1]
		if *m.Subject != "c" || m.ApplicationProperties["n"] != int64(42) || len(m.ApplicationProperties) != 1 || string(m.Body) != "body" || m.MessageID != "m" {
			t.Errorf("the changed copy has %s, %v, %s", *m.Subject, m.ApplicationProperties, m.Body)
		}
		if m := take("other", 1)[0]; *m.Subject != "s" || m.ApplicationProperties["x"] != 1.5 {
			t.Errorf("another subscription sees %s, %v", *m.Subject, m.ApplicationProperties)
		}
		for _, sub := range []string{"one", "other"} {
			if c := must(srv.Counters("t/Subscriptions/" + sub))(t); c.Enqueued != c.Completed {
				t.Errorf("%s: %+v", sub, c)
			}
		}
	})
}

// FuzzApplyChanges: the changed message decodes and contains the changes.
func FuzzApplyChanges(f *testing.F) {
	var p amqp.Properties
	p.SetText(amqp.MessageID, "id")
	w := amqp.BeginMapSection(p.Append(nil), amqp.CodeApplicationProperties)
	w.String("a", int64(1))
	f.Add(amqp.AppendData(w.Finish(), []byte("x")), "a", "subject")
	f.Fuzz(func(t *testing.T, payload []byte, name, subject string) {
		fields, err := decodeFields(payload)
		if err != nil || name == "" || subject == "" {
			return
		}
		fields.Subject = subject
		out, err := applyChanges(payload, &fields, []sqlfilter.Change{{Property: name, Value: "v"}, {}})
		if err != nil {
			return
		}
		again, err := decodeFields(out)
		if err != nil || again.Subject != subject || again.Properties[name] != "v" {
			t.Errorf("%+v, %v", again, err)
		}
	})
}
