package broker

import (
	"errors"
	"strconv"
	"testing"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

func sub(rules ...Rule) Subscription { return Subscription{Rules: rules} }

func sqlRule(name, expression string) Rule {
	return Rule{Name: name, Filter: sqlfilter.Filter{Kind: sqlfilter.KindSQL, Expression: expression}}
}

func TestRulesSelectMessages(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{})
		r.subscription("t", "all", Subscription{})
		r.subscription("t", "none", sub([]Rule{}...))
		r.subscription("t", "false", sub(Rule{Name: "f", Filter: sqlfilter.Filter{Kind: sqlfilter.KindFalse}}))
		r.subscription("t", "red", sub(sqlRule("s", "color = 'red'")))
		r.subscription("t", "one", sub(
			Rule{Name: "c", Filter: sqlfilter.Filter{Kind: sqlfilter.KindCorrelation, Correlation: sqlfilter.Fields{Subject: "one"}}},
			Rule{Name: "d", Filter: sqlfilter.Filter{Kind: sqlfilter.KindCorrelation, Correlation: sqlfilter.Fields{Properties: map[string]any{"color": "blue"}}}}))
		batch := []Message{msg("subject=one color=red"), msg("subject=two color=blue"), msg("subject=ONE")}
		r.send("t", batch...)
		check := func() {
			t.Helper()
			r.wantPeek("t/subscriptions/all", "subject=one color=red", "subject=two color=blue", "subject=ONE")
			r.wantPeek("t/subscriptions/none")
			r.wantPeek("t/subscriptions/false")
			r.wantPeek("t/subscriptions/red", "subject=one color=red")
			r.wantPeek("t/subscriptions/one", "subject=one color=red", "subject=two color=blue")
		}
		check()
		if r.fs != nil {
			r.crash()
			check()
		}
		ctx := r.t.Context()
		if _, err := r.CreateRule(ctx, "t", "none", sqlRule("s", "sys.Label LIKE 't%'")); err != nil {
			t.Fatal(err)
		}
		if _, err := r.CreateRule(ctx, "T", "None", sqlRule("S", "a=1")); !errors.Is(err, EntityExists) {
			t.Errorf("same rule twice: %v", err)
		}
		if _, err := r.UpdateRule(ctx, "t", "red", sqlRule("s", "color IS NULL")); err != nil {
			t.Fatal(err)
		}
		if err := r.DeleteRule(ctx, "t", "one", "c"); err != nil {
			t.Fatal(err)
		}
		if err := r.DeleteRule(ctx, "t", "one", "c"); !errors.Is(err, NotFound) {
			t.Errorf("deleted twice: %v", err)
		}
		r.send("t", batch...)
		r.wantPeek("t/subscriptions/none", "subject=two color=blue")
		r.wantPeek("t/subscriptions/red", "subject=one color=red", "subject=ONE")
		r.wantPeek("t/subscriptions/one", "subject=one color=red", "subject=two color=blue", "subject=two color=blue")
		if i, _ := r.Topic("t"); i.CorrelationFilters != 1 || i.SQLFilters != 4 || i.SubscriptionCount != 5 {
			t.Errorf("topic %+v", i.Counts)
		}
	})
}

func TestUnsupportedRulesAreRefused(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		ctx := r.t.Context()
		r.topic("t", Topic{})
		r.subscription("t", "s", Subscription{})
		if _, err := r.CreateRule(ctx, "t", "s", sqlRule("bad", "upper(a) = 'X'")); !errors.Is(err, ArgumentError) {
			t.Errorf("a function: %v", err)
		}
		rule := Rule{Name: "act", Filter: sqlfilter.Filter{Kind: sqlfilter.KindTrue}, Action: &sqlfilter.Action{Expression: "DROP a"}}
		if _, err := r.CreateRule(ctx, "t", "s", rule); !errors.Is(err, ArgumentError) {
			t.Errorf("an action: %v", err)
		}
		r.send("t", msg("a"))
		if _, err := r.CreateRule(ctx, "t", "s", Rule{Name: "odd", Filter: sqlfilter.Filter{Kind: sqlfilter.KindUnknown}, Opaque: []byte("<xml/>")}); err != nil {
			t.Fatal(err)
		}
		if err := r.trySend("t", msg("b")); !errors.Is(err, NotImplemented) {
			t.Errorf("send past an unknown filter: %v", err)
		}
		if r.fs != nil {
			r.crash()
		}
		i, err := r.Subscription("t", "s")
		if err != nil || len(i.Rules) != 2 || i.Rules[0].Name != DefaultRule || string(i.Rules[1].Opaque) != "<xml/>" {
			t.Errorf("rules %+v: %v", i.Rules, err)
		}
		r.wantPeek("t/subscriptions/s", "a")
	})
}

// TestActionCopies: the copies made by actions are messages of their own, also after a crash,
// and count for the quota until they are removed.
func TestActionCopies(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{})
		s := sub(sqlRule("plain", "a = '1'"), sqlRule("act", "a = '1'"), sqlRule("other", "b = '2'"))
		s.Rules[1].Action, s.Rules[2].Action = &sqlfilter.Action{Expression: "SET c = 3"}, &sqlfilter.Action{Expression: "SET d = missing"}
		s.DeadLetteringOnFilterErrors = true
		r.subscription("t", "s", s)
		r.subscription("t", "all", Subscription{})
		r.send("t", msg("a=1"), msg("b=2"))
		if r.fs != nil {
			r.crash()
		}
		r.wantPeek("t/subscriptions/s", "a=1", "a=1 c=3")
		r.wantPeek("t/subscriptions/all", "a=1", "b=2")
		r.wantPeek("t/subscriptions/s/$deadletterqueue", "b=2")
		for path, n := range map[string]int{"t/subscriptions/s": 2, "t/subscriptions/all": 2, "t/subscriptions/s/$deadletterqueue": 1} {
			c := r.receive(path, 0)
			for range n {
				c.AddCredit(1)
				c.settle(c.one(), Complete)
			}
		}
		if i, _ := r.Topic("t"); i.SizeBytes != 0 {
			t.Errorf("%d bytes are held by nothing", i.SizeBytes)
		}
	})
}

func TestFilterErrors(t *testing.T) {
	modes(t, func(_ *testing.T, r *rig) {
		r.topic("t", Topic{})
		keep := sub(sqlRule("s", "a = '1'"))
		keep.DeadLetteringOnFilterErrors = true
		r.subscription("t", "keep", keep)
		r.subscription("t", "drop", sub(sqlRule("s", "a = '1'")))
		r.send("t", msg("broken"), msg("a=1"))
		r.wantPeek("t/subscriptions/keep", "a=1")
		r.wantPeek("t/subscriptions/keep/$deadletterqueue", "broken")
		r.wantPeek("t/subscriptions/drop", "a=1")
		r.wantPeek("t/subscriptions/drop/$deadletterqueue")
	})
}

func TestSessionlessMessageIsDeadLettered(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{})
		r.subscription("t", "s", Subscription{RequiresSession: true})
		r.subscription("t", "p", Subscription{})
		r.send("t", msg("a"), of("x", "b"))
		r.wantPeek("t/subscriptions/p", "a", "b")
		r.wantPeek("t/subscriptions/s", "b")
		d := r.receive("t/subscriptions/s/$deadletterqueue", 1).one()
		if d.DeadLetterDescription != "Session enabled entity doesn't allow a message whose session identifier is null." || d.DeadLetterSource != "t/Subscriptions/s" {
			t.Errorf("dead letter %+v", d)
		}
	})
}

// Payloads shared by several subscriptions are stored once and deleted with the last
// reference.
func TestSharedPayloadsAreStoredOnce(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{})
		for _, s := range []string{"a", "b", "c"} {
			r.subscription("t", s, Subscription{})
		}
		for i := range 10 {
			r.send("t", msg(strconv.Itoa(i)))
		}
		if p, m := r.records(kindPayload), r.records(kindMessage); p != 10 || m != 30 {
			t.Fatalf("%d payloads, %d messages stored", p, m)
		}
		r.crash()
		for _, s := range []string{"a", "b"} {
			c := r.receive("t/subscriptions/"+s, 100)
			for i, d := range c.take() {
				if s == "b" && i == 3 {
					c.settle(d, DeadLetter) // keeps its payload
					continue
				}
				c.settle(d, Complete)
			}
		}
		r.crash()
		r.wantPeek("t/subscriptions/c", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
		if err := r.DeleteSubscription(r.t.Context(), "t", "c"); err != nil {
			t.Fatal(err)
		}
		r.await()
		if p, m := r.records(kindPayload), r.records(kindMessage); p != 1 || m != 2 { // a message and its state
			t.Errorf("%d payloads, %d message records left", p, m)
		}
		if i, _ := r.Topic("t"); i.SizeBytes != 1 {
			t.Errorf("topic holds %d bytes", i.SizeBytes)
		}
		c := r.receive("t/subscriptions/b/$deadletterqueue", 1)
		c.settle(c.want("3")[0], Complete)
		if n := r.records(kindPayload) + r.records(kindMessage); n != 0 {
			t.Errorf("%d records left", n)
		}
	})
}
