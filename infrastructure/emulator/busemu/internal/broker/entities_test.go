package broker

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

func TestEntitiesAreListed(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		ctx := r.t.Context()
		r.queue("Orders/new", Queue{UserMetadata: "u", Opaque: []byte{1}, Partitioned: true})
		r.queue("a", Queue{ForwardTo: "orders/new", ForwardDeadLetteredTo: "sb://host:1/Orders/new"})
		r.topic("T", Topic{})
		r.subscription("t", "S", Subscription{Rules: []Rule{{
			Name: "all", Filter: sqlfilter.Filter{
				Kind: sqlfilter.KindSQL, Expression: "a=@s OR a=@i OR a=@j OR a=@f OR a=@t OR a=@b",
				Parameters: []sqlfilter.Parameter{{Name: "@s", Value: "x"}, {Name: "@i", Value: int64(1) << 60}, {Name: "@j", Value: int32(7)}, {Name: "@f", Value: 1.5}, {Name: "@t", Value: time.Unix(5, 0).UTC()}, {Name: "@b", Value: true}},
			},
			Action: &sqlfilter.Action{Expression: "SET a=1", Parameters: []sqlfilter.Parameter{{Name: "@p", Value: int64(3)}}},
		}, {
			Name:   "some",
			Filter: sqlfilter.Filter{Kind: sqlfilter.KindCorrelation, Correlation: sqlfilter.Fields{To: "x", Properties: map[string]any{"n": int64(2), "s": "2"}}},
		}}})
		before := []any{r.Queues(), r.Topics()}
		subs, err := r.Subscriptions("t")
		if err != nil || len(subs) != 1 || subs[0].Topic != "T" {
			t.Fatalf("subscriptions %+v: %v", subs, err)
		}
		q := r.Queues()[0]
		if q.Name != "Orders/new" || q.LockDuration != time.Minute || q.MaxSizeMB != 16*1024 || q.MaxDeliveryCount != 10 || q.DefaultTTL != Forever || q.Status != StatusActive {
			t.Errorf("queue %+v", q)
		}
		if r.fs == nil {
			return
		}
		r.crash()
		equalTimes := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
		if diff := cmp.Diff(before, []any{r.Queues(), r.Topics()}, equalTimes); diff != "" {
			t.Error(diff)
		}
		again, err := r.Subscriptions("T")
		if diff := cmp.Diff(subs, again, equalTimes); diff != "" || err != nil {
			t.Error(err, diff)
		}
		if err := r.DeleteQueue(ctx, "A"); err != nil {
			t.Fatal(err)
		}
		r.crash()
		r.queue("a", Queue{})
		if id := r.queues["a"].id; id != 5 {
			t.Errorf("a new queue has id %d; 1 to 4 were used", id)
		}
		r.crash()
		if len(r.Queues()) != 2 {
			t.Errorf("queues %+v", r.Queues())
		}
	})
}

func TestAdminRefusals(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		ctx := r.t.Context()
		r.queue("q", Queue{})
		r.topic("t", Topic{})
		r.subscription("t", "s", Subscription{})
		create := func(name string, p Queue) error { p.Name = name; _, err := r.CreateQueue(ctx, p); return err }
		topic := func(name string, p Topic) error { p.Name = name; _, err := r.CreateTopic(ctx, p); return err }
		subscription := func(topic, name string, p Subscription) error {
			p.Name = name
			_, err := r.CreateSubscription(ctx, topic, p)
			return err
		}
		update := func(p Queue) error { p.Name = "q"; _, err := r.UpdateQueue(ctx, p); return err }
		rule := func(x Rule) error { _, err := r.CreateRule(ctx, "t", "s", x); return err }
		for name, test := range map[string]struct {
			err  error
			want Condition
		}{
			"queue exists":             {create("Q", Queue{}), EntityExists},
			"topic has the name":       {create("T", Queue{}), EntityExists},
			"queue has the name":       {topic("q", Topic{}), EntityExists},
			"subscription exists":      {subscription("T", "S", Subscription{}), EntityExists},
			"no topic":                 {subscription("q", "s", Subscription{}), NotFound},
			"empty name":               {create("", Queue{}), ArgumentError},
			"long name":                {create(strings.Repeat("x", 261), Queue{}), ArgumentError},
			"odd name":                 {create("a?b", Queue{}), ArgumentError},
			"long subscription name":   {subscription("t", strings.Repeat("x", 51), Subscription{}), ArgumentError},
			"lock too long":            {create("x", Queue{LockDuration: 6 * time.Minute}), ArgumentError},
			"window too short":         {create("x", Queue{DuplicateDetectionWindow: 19 * time.Second}), ArgumentError},
			"window too long":          {topic("x", Topic{DuplicateDetectionWindow: 169 * time.Hour}), ArgumentError},
			"time to live too short":   {create("x", Queue{DefaultTTL: time.Millisecond}), ArgumentError},
			"idle too short":           {create("x", Queue{AutoDeleteOnIdle: time.Minute}), ArgumentError},
			"deliveries":               {create("x", Queue{MaxDeliveryCount: -1}), ArgumentError},
			"status":                   {create("x", Queue{Status: "Odd"}), ArgumentError},
			"forwards to nothing":      {create("x", Queue{ForwardTo: "nothing"}), ArgumentError},
			"message of 300 KB":        {create("x", Queue{MaxMessageSizeKB: 300}), ArgumentError},
			"session changes":          {update(Queue{RequiresSession: true}), ArgumentError},
			"detection changes":        {update(Queue{RequiresDuplicateDetection: true}), ArgumentError},
			"partitioning changes":     {update(Queue{Partitioned: true}), ArgumentError},
			"rule without a name":      {rule(Rule{}), ArgumentError},
			"rule of an unknown kind":  {rule(Rule{Name: "r", Filter: sqlfilter.Filter{Kind: "Odd"}}), ArgumentError},
			"parameter of an odd type": {rule(Rule{Name: "r", Filter: sqlfilter.Filter{Kind: sqlfilter.KindSQL, Expression: "a=@p", Parameters: []sqlfilter.Parameter{{Name: "@p", Value: []int{1}}}}}), ArgumentError},
			"delete nothing":           {r.DeleteQueue(ctx, "nothing"), NotFound},
			"delete no topic":          {r.DeleteTopic(ctx, "q"), NotFound},
			"delete no subscription":   {r.DeleteSubscription(ctx, "t", "x"), NotFound},
		} {
			if !errors.Is(test.err, test.want) {
				t.Errorf("%s: got %v, want %s", name, test.err, test.want)
			}
		}
		err := create("", Queue{LockDuration: -1, MaxDeliveryCount: -1})
		for _, fault := range []string{"name", "LockDuration", "MaxDeliveryCount"} {
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("%v does not tell of %s", err, fault)
			}
		}
	})
}

func TestLookup(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("Dir/Queue", Queue{RequiresSession: true})
		r.topic("Topic", Topic{RequiresDuplicateDetection: true})
		r.subscription("topic", "Sub", Subscription{RequiresSession: true})
		for path, want := range map[string]EntityInfo{
			"dir/queue":                                          {Path: "Dir/Queue", Kind: KindQueue, RequiresSession: true},
			"/DIR/queue/$deadletterqueue":                        {Path: "Dir/Queue/$DeadLetterQueue", Kind: KindDeadLetter},
			"dir/queue/$Transfer/$DeadLetterQueue":               {Path: "Dir/Queue/$Transfer/$DeadLetterQueue", Kind: KindTransferDeadLetter},
			"TOPIC":                                              {Path: "Topic", Kind: KindTopic, DuplicateDetection: true},
			"topic/subscriptions/sub":                            {Path: "Topic/Subscriptions/Sub", Kind: KindSubscription, RequiresSession: true},
			"topic/Subscriptions/sub/$DeadLetterQueue":           {Path: "Topic/Subscriptions/Sub/$DeadLetterQueue", Kind: KindDeadLetter},
			"topic/subscriptions/sub/$transfer/$dEADlEtTERqueue": {Path: "Topic/Subscriptions/Sub/$Transfer/$DeadLetterQueue", Kind: KindTransferDeadLetter},
		} {
			got, err := r.Lookup(path)
			got.MaxMessageSize, got.MaxBatchSize, got.LockDuration, got.Status = 0, 0, 0, ""
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s leads to %+v: %v", path, got, err)
			}
		}
		for _, path := range []string{"", "nothing", "topic/$deadletterqueue", "topic/subscriptions/", "topic/subscriptions/x", "dir", "dir/queue/subscriptions/sub"} {
			if got, err := r.Lookup(path); !errors.Is(err, NotFound) {
				t.Errorf("%s leads to %+v: %v", path, got, err)
			}
		}
		if err := r.trySend("topic/subscriptions/sub", msg("a")); !errors.Is(err, NotAllowed) {
			t.Errorf("send to a subscription: %v", err)
		}
		if _, err := r.OpenReceiver("topic", ReceiverOptions{}); !errors.Is(err, NotAllowed) {
			t.Errorf("receive from a topic: %v", err)
		}
		r.receive("dir/queue/$transfer/$deadletterqueue", 1).want()
	})
}

func TestForwarding(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		ctx := r.t.Context()
		r.queue("end", Queue{RequiresDuplicateDetection: true})
		r.queue("dead", Queue{})
		r.queue("start", Queue{ForwardTo: "sb://host/END"})
		r.topic("t", Topic{})
		r.subscription("t", "s", Subscription{ForwardTo: "start", ForwardDeadLetteredTo: "dead"})
		r.send("end", msg("0"))
		r.send("start", msg("1"), msg("1"), msg("2"))
		r.send("t", msg("3"), msg("2"))
		r.wantPeek("end", "0", "1", "2", "3")
		if _, err := r.OpenReceiver("start", ReceiverOptions{}); !errors.Is(err, NotAllowed) {
			t.Errorf("receiver where messages are forwarded: %v", err)
		}
		ds, _ := r.Peek("end", PeekOptions{From: 4})
		if d := ds[0]; d.SequenceNumber != 4 || d.EnqueuedSequenceNumber != 1 {
			t.Errorf("forwarded %+v", d)
		}
		if err := r.DeleteQueue(ctx, "end"); err != nil {
			t.Fatal(err)
		}
		r.send("start", msg("4"))
		r.wantPeek("start/$deadletterqueue", "4")
		r.queue("end", Queue{})
		if _, err := r.UpdateQueue(ctx, Queue{Name: "end", ForwardTo: "start"}); err != nil {
			t.Fatal(err)
		}
		r.send("start", msg("round")) // start and end forward to each other
		synctest.Wait()
		found := append(r.peek("start/$deadletterqueue"), r.peek("end/$deadletterqueue")...)
		if strings.Join(found, " ") != "4 round" {
			t.Errorf("dead-lettered %q", found)
		}
		if r.fs != nil {
			r.crash()
			if i, _ := r.Queue("start"); i.Active != 0 || i.DeadLetter != 2 && i.DeadLetter != 1 {
				t.Errorf("after the crash: %+v", i.Counts)
			}
		}
	})
}

func TestDeadLettersAreForwarded(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.queue("dead", Queue{})
		r.queue("q", Queue{ForwardDeadLetteredTo: "dead"})
		r.send("q", msg("a"))
		c := r.receive("q", 1)
		if err := c.trySettle(c.one(), Outcome{Kind: DeadLetter, Reason: "why"}); err != nil {
			t.Fatal(err)
		}
		r.wantPeek("q/$deadletterqueue")
		if d := r.receive("dead", 1).one(); d.DeadLetterReason != "why" || d.DeadLetterSource != "q" {
			t.Errorf("dead letter %+v", d)
		}
	})
}

func TestDump(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		r.topic("t", Topic{})
		r.subscription("t", "s", Subscription{RequiresSession: true})
		for range 30 {
			r.send("t", of("x", "payload"))
		}
		r.accept("t/subscriptions/s", "x", 1).one()
		for _, want := range []string{"topic t", "subscription s", "#1 locked", "#2 ready", "and 10 more", `session "x": held=true`} {
			if !strings.Contains(r.Dump(), want) {
				t.Errorf("no %q in\n%s", want, r.Dump())
			}
		}
	})
}

func TestAutoDeleteOnIdle(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		const idle = 5 * time.Minute
		r.queue("q", Queue{AutoDeleteOnIdle: idle})
		r.topic("t", Topic{AutoDeleteOnIdle: 2 * idle})
		r.subscription("t", "s", Subscription{AutoDeleteOnIdle: idle})
		exists := func(want ...string) {
			t.Helper()
			synctest.Wait()
			for _, path := range []string{"q", "t", "t/subscriptions/s"} {
				_, err := r.Lookup(path)
				if is := err == nil; is != strings.Contains(strings.Join(want, " ")+" ", path+" ") {
					t.Errorf("after %v: %s exists: %t", r.Now().Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), path, is)
				}
			}
		}
		time.Sleep(4 * time.Minute)
		r.send("t", msg("a"))
		c := r.receive("q", 1)
		time.Sleep(time.Minute)
		exists("q", "t")
		time.Sleep(time.Hour)
		exists("q")
		c.Close()
		if r.fs != nil {
			time.Sleep(4 * time.Minute)
			r.crash()
		}
		time.Sleep(idle - time.Second)
		exists("q")
		time.Sleep(time.Second)
		exists()
		if r.fs != nil {
			r.await()
			if n := r.records(kindEntity) + r.records(kindMessage) + r.records(kindPayload); n != 0 {
				t.Errorf("%d records left", n)
			}
		}
	})
}

// TestForwardingAndSubscriptionsAreUse: an entity that forwards is never idle, one that messages
// are forwarded to is used by them, and a receiver of a subscription uses the topic too.
func TestForwardingAndSubscriptionsAreUse(t *testing.T) {
	modes(t, func(t *testing.T, r *rig) {
		const idle = 5 * time.Minute
		r.queue("target", Queue{AutoDeleteOnIdle: idle})
		r.queue("from", Queue{AutoDeleteOnIdle: idle, ForwardTo: "target"})
		r.topic("t", Topic{AutoDeleteOnIdle: idle})
		r.subscription("t", "s", Subscription{AutoDeleteOnIdle: idle})
		exists := func(path string, want bool) {
			t.Helper()
			synctest.Wait()
			if _, err := r.Lookup(path); (err == nil) != want {
				t.Errorf("after %v: %s: %v", r.Now().Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), path, err)
			}
		}
		c := r.receive("t/subscriptions/s", 1)
		for range 10 {
			time.Sleep(4 * time.Minute)
			r.send("from", msg(r.Now().String()))
		}
		for _, path := range []string{"target", "from", "t", "t/subscriptions/s"} {
			exists(path, true)
		}
		c.Close()
		time.Sleep(idle)
		for _, path := range []string{"target", "t", "t/subscriptions/s"} {
			exists(path, false)
		}
		exists("from", true)
	})
}

// TestRefusedForwardsAreTriedOnceAfterRestart: messages that the target refuses stay in memory,
// so that a forward does not read and try them again in each of its rounds.
func TestRefusedForwardsAreTriedOnceAfterRestart(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		const n = maxForward + 10 // more than one round
		r.queue("target", Queue{})
		r.queue("q", Queue{ForwardDeadLetteredTo: "target"})
		if _, err := r.UpdateQueue(t.Context(), Queue{Name: "target", Status: StatusSendDisabled}); err != nil {
			t.Fatal(err)
		}
		c := r.receive("q", n)
		for i := range n {
			r.send("q", msg(fmt.Sprint(i)))
			if err := c.trySettle(c.one(), Outcome{Kind: DeadLetter, Reason: "why"}); err != nil {
				t.Fatal(err)
			}
		}
		r.crash()
		synctest.Wait()
		counters, err := r.Counters("target")
		if err != nil || counters.Refused != n {
			t.Errorf("%d forwards refused after the restart, want %d: %v", counters.Refused, n, err)
		}
	})
}
