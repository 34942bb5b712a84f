package servicebus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/tests/testenv"
)

func TestPublishSendsABatchPerKey(t *testing.T) {
	l := &fakeLink{}
	p := publisherOver(t, l, nil)
	if err := p.Publish(t.Context(), []relay.Group{group("a", 10, 10, 10), group("b", 10), group("c", 10, 10)}); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"a": {"a.1", "a.2", "a.3"}, "b": {"b.1"}, "c": {"c.1", "c.2"}}
	if diff := cmp.Diff(want, l.accepted); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if l.batches != 2 || l.alone != 1 {
		t.Errorf("%d batches and %d messages alone, want one per key, and no batch for a single message", l.batches, l.alone)
	}
}

func TestPublishPacksKeys(t *testing.T) {
	l := &fakeLink{}
	p := publisherOver(t, l, &PublisherOptions{PackKeys: true, limits: limits{packMessages: 4}})
	if err := p.Publish(t.Context(), []relay.Group{group("a", 1, 1, 1), group("b", 1), group("c", 1, 1), group("d", 1)}); err != nil {
		t.Fatal(err)
	}
	if l.batches != 2 || len(l.accepted) != 4 {
		t.Errorf("%d batches with %v, want 2 with all", l.batches, l.accepted)
	}
}

func TestPublishSplitsATooLargeBatch(t *testing.T) {
	for _, pack := range []bool{false, true} {
		t.Run(fmt.Sprintf("pack=%v", pack), func(t *testing.T) {
			l := &fakeLink{maxBatch: 12_000, maxMessage: 30_000}
			p := publisherOver(t, l, &PublisherOptions{PackKeys: pack})
			err := p.Publish(t.Context(), []relay.Group{
				group("a", 6000, 6000, 4000, 100), // too much for one batch
				group("b", 10_000, 10_000),
				group("c", 1000, 25_000, 1000), // the second is sent as a single message
				group("d", 1000, 30_001, 1000), // the second is refused
				group("e", 10),
			})
			want := map[string][]string{
				"a": {"a.1", "a.2", "a.3", "a.4"}, "b": {"b.1", "b.2"}, "c": {"c.1", "c.2", "c.3"}, "d": {"d.1"}, "e": {"e.1"},
			}
			if diff := cmp.Diff(want, l.accepted); diff != "" {
				t.Errorf("accepted (-want +got):\n%s", diff)
			}
			wantFailed(t, err, "d after 1: refused too_large")
		})
	}
}

// wantFailed checks the failed keys in err, each as "key after sent: class reason". The key of group i
// must be the i-th letter.
func wantFailed(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if err != nil {
		e, ok := errors.AsType[*relay.PublishError](err)
		if !ok {
			t.Fatalf("error %v, want a PublishError", err)
		}
		for _, k := range e.Keys {
			got = append(got, fmt.Sprintf("%c after %d: %s %s", 'a'+rune(k.Group), k.Sent, relay.ClassOf(k.Err), relay.ReasonOf(k.Err)))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failed (-want +got):\n%s\n%v", diff, err)
	}
}

func TestPublishLimitsTheMessagesOfABatch(t *testing.T) {
	l := &fakeLink{}
	p := publisherOver(t, l, &PublisherOptions{limits: limits{batchMessages: 2}})
	if err := p.Publish(t.Context(), []relay.Group{group("a", 1, 1, 1, 1, 1)}); err != nil {
		t.Fatal(err)
	}
	if l.batches+l.alone != 3 {
		t.Errorf("%d batches, want 3", l.batches+l.alone)
	}
}

// A message that does not fit into a batch is sent alone, because single messages may be larger.
func TestPublishLimitsTheBytesOfABatch(t *testing.T) {
	l := &fakeLink{maxBatch: 1 << 20, maxMessage: 10 << 20}
	p := publisherOver(t, l, nil)
	if err := p.Publish(t.Context(), []relay.Group{group("a", 600<<10, 600<<10, 2<<20)}); err != nil {
		t.Fatal(err)
	}
	if l.batches+l.alone != 3 {
		t.Errorf("%d batches, want 3 under the cap of 1 MiB", l.batches+l.alone)
	}
}

func TestPublishFindsTheRefusedMessage(t *testing.T) {
	for _, pack := range []bool{false, true} {
		for at, key := range []string{"a", "b", "c"} {
			t.Run(fmt.Sprintf("pack=%v %s", pack, key), func(t *testing.T) {
				l := &fakeLink{refuse: func(ids []string, _ map[string]bool) error {
					if slices.Contains(ids, key+".3") {
						return rejected(amqp.ErrCondNotAllowed)
					}
					return nil
				}}
				p := publisherOver(t, l, &PublisherOptions{PackKeys: pack})
				groups := []relay.Group{group("a", 1, 1), group("b", 1, 1), group("c", 1, 1)}
				groups[at] = group(key, 1, 1, 1, 1, 1)
				wantFailed(t, p.Publish(t.Context(), groups), key+" after 2: refused not_allowed")
				want := map[string][]string{"a": {"a.1", "a.2"}, "b": {"b.1", "b.2"}, "c": {"c.1", "c.2"}}
				if diff := cmp.Diff(want, l.accepted); diff != "" {
					t.Errorf("accepted (-want +got):\n%s", diff)
				}
				if p.unpacked.Load() {
					t.Error("packing ended because of one refused message")
				}
			})
		}
	}
}

func TestPublishStopsPackingAfterARefusal(t *testing.T) {
	l := &fakeLink{refuse: func(_ []string, keys map[string]bool) error {
		if len(keys) > 1 {
			return rejected(amqp.ErrCondNotAllowed)
		}
		return nil
	}}
	p := publisherOver(t, l, &PublisherOptions{PackKeys: true})
	for range 2 {
		l.sends = 0
		if err := p.Publish(t.Context(), []relay.Group{group("a", 1), group("b", 1), group("c", 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if l.sends != 3 {
		t.Errorf("%d sends in the second call, want 3 without another packed batch", l.sends)
	}
}

// A refused batch of one key, whose messages are accepted one by one, is no reason to stop packing.
func TestRefusedBatchOfOneKeyKeepsPacking(t *testing.T) {
	l := &fakeLink{refuse: func(ids []string, _ map[string]bool) error {
		if len(ids) > 1 {
			return rejected(amqp.ErrCondNotAllowed)
		}
		return nil
	}}
	p := publisherOver(t, l, &PublisherOptions{PackKeys: true})
	if err := p.Publish(t.Context(), []relay.Group{group("a", 1, 1)}); err != nil {
		t.Fatal(err)
	}
	if p.unpacked.Load() {
		t.Error("packing ended because of a batch of one key")
	}
}

func TestPublishRefusesLongIDsWithoutSending(t *testing.T) {
	l := &fakeLink{}
	p := publisherOver(t, l, nil)
	long := group("b", 1, 1)
	long.Messages[1].ID = strings.Repeat("ü", 129)
	key := group("c", 1)
	key.Messages[0].Key = strings.Repeat("k", 129)
	fits := group("d", 1)
	fits.Messages[0].ID = strings.Repeat("ü", 128)
	err := p.Publish(t.Context(), []relay.Group{group("a", 1), long, key, fits})
	wantFailed(t, err, "b after 1: refused id_too_long", "c after 0: refused key_too_long")
	want := map[string][]string{"a": {"a.1"}, "b": {"b.1"}, "d": {fits.Messages[0].ID}}
	if diff := cmp.Diff(want, l.accepted); diff != "" || l.sends != 3 {
		t.Errorf("%d sends, want 3; accepted (-want +got):\n%s", l.sends, diff)
	}
}

// The failure of a key stops no other key, and each key is tried once.
func TestFailedKeysDoNotStopOthers(t *testing.T) {
	for _, inFlight := range []int{1, 4} {
		l := &fakeLink{refuse: func(_ []string, keys map[string]bool) error {
			if keys["b"] || keys["d"] {
				return rejected("com.microsoft:server-busy")
			}
			return nil
		}}
		p := publisherOver(t, l, &PublisherOptions{limits: limits{inFlight: inFlight}})
		var groups []relay.Group
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			groups = append(groups, group(key, 1, 1))
		}
		wantFailed(t, p.Publish(t.Context(), groups), "b after 0: outage server_busy", "d after 0: outage server_busy")
		if l.sends != len(groups) || len(l.accepted) != 3 {
			t.Errorf("%d sends, accepted %v; want one send per key", l.sends, l.accepted)
		}
	}
}

// The error of a batch does not identify the key that caused it.
func TestPublishSendsAGroupAlone(t *testing.T) {
	var packed []string
	l := &fakeLink{refuse: func(_ []string, keys map[string]bool) error {
		packed = append(packed, fmt.Sprint(slices.Sorted(maps.Keys(keys))))
		return nil
	}}
	p := publisherOver(t, l, &PublisherOptions{PackKeys: true, limits: limits{inFlight: 1}})
	groups := []relay.Group{group("a", 1), group("b", 1), group("c", 1, 1), group("d", 1), group("e", 1)}
	groups[2].Alone = true
	if err := p.Publish(t.Context(), groups); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"[a b]", "[c]", "[d e]"}, packed); diff != "" {
		t.Errorf("keys of the batches (-want +got):\n%s", diff)
	}
}

func TestPublishEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLink{delay: time.Minute}
		p := publisherOver(t, l, &PublisherOptions{limits: limits{inFlight: 1, sendTimeout: time.Hour}})
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		began := time.Now()
		err := p.Publish(ctx, []relay.Group{group("a", 1), group("b", 1), group("c", 1)})
		wantFailed(t, err, "b after 0: outage interrupted", "c after 0: outage interrupted")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v is not DeadlineExceeded", err)
		}
		if took := time.Since(began); took != 90*time.Second || l.alone != 2 {
			t.Errorf("took %v and %d sends, want 90 s and 2", took, l.alone)
		}
	})
}

func TestPublishLimitsTheTimeOfASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLink{delay: time.Minute}
		p := publisherOver(t, l, &PublisherOptions{limits: limits{sendTimeout: 5 * time.Second}})
		began := time.Now()
		wantFailed(t, p.Publish(t.Context(), []relay.Group{group("a", 1)}), "a after 0: outage send_timeout")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %v, want 5 s", took)
		}
	})
}

// The link had ended while it was idle. A slow broker gets the whole time for the send on the new link.
func TestRetryHasTheTimeOfASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		l := &fakeLink{delay: 4 * time.Second, refuse: func([]string, map[string]bool) error {
			if ended {
				return nil
			}
			ended = true
			return &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondDetachForced}}
		}}
		p := publisherOver(t, l, &PublisherOptions{limits: limits{sendTimeout: 5 * time.Second}})
		if err := p.Publish(t.Context(), []relay.Group{group("a", 1)}); err != nil {
			t.Errorf("error %v, want the message to be sent", err)
		}
	})
}

func TestPublishSendsNothingAfterTheDeadline(t *testing.T) {
	l := &fakeLink{}
	p := publisherOver(t, l, nil)
	// The deadline has passed and the context has not ended, as after a pause of the process.
	ctx := staleContext{t.Context(), time.Now().Add(-time.Second)}
	wantFailed(t, p.Publish(ctx, []relay.Group{group("a", 1)}), "a after 0: outage interrupted")
	if l.sends != 0 || l.opened != 0 {
		t.Errorf("after the deadline the link was opened %d times, and %d batches were sent", l.opened, l.sends)
	}
}

// The deadline passes while the link is opened, and the context has not ended yet.
func TestPublishSendsNothingIfTheDeadlinePassesWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLink{opening: 2 * time.Second}
		p := publisherOver(t, l, nil)
		ctx := staleContext{t.Context(), time.Now().Add(time.Second)}
		wantFailed(t, p.Publish(ctx, []relay.Group{group("a", 1)}), "a after 0: outage interrupted")
		if l.sends != 0 || l.opened != 1 {
			t.Errorf("the link was opened %d times, and %d batches were sent; want 1 and none", l.opened, l.sends)
		}
	})
}

func TestFailedBatchFailsAllItsKeys(t *testing.T) {
	l := &fakeLink{refuse: func([]string, map[string]bool) error { return rejected("com.microsoft:server-busy") }}
	p := publisherOver(t, l, &PublisherOptions{PackKeys: true})
	err := p.Publish(t.Context(), []relay.Group{group("a", 1, 1), group("b", 1), group("c", 1, 1)})
	wantFailed(t, err, "a after 0: outage server_busy", "b after 0: outage server_busy", "c after 0: outage server_busy")
	if l.sends != 1 {
		t.Errorf("%d sends, want one with all keys", l.sends)
	}
}

// staleContext has a deadline but does not end at it.
type staleContext struct {
	context.Context //nolint:containedctx // it is a context
	deadline        time.Time
}

func (c staleContext) Deadline() (time.Time, bool) { return c.deadline, true }

func TestPublishLimitsBatchesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLink{delay: time.Second}
		p := publisherOver(t, l, &PublisherOptions{limits: limits{inFlight: 5}})
		var groups []relay.Group
		for i := range 50 {
			groups = append(groups, group(fmt.Sprintf("k%d", i), 1))
		}
		began := time.Now()
		if err := p.Publish(t.Context(), groups); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("50 sends of 1 s took %v, want 10 s with 5 in flight", took)
		}
	})
}

// TestPublishRandom sends random groups with small limits and random refusals. It checks the order, that
// no message is missing, and that no key has two batches in flight.
func TestPublishRandom(t *testing.T) {
	rng := testenv.Random(t)
	for range 300 {
		bad := map[string]bool{}
		var groups []relay.Group
		for g := range 1 + rng.IntN(20) {
			sizes := make([]int, 1+rng.IntN(12))
			for i := range sizes {
				sizes[i] = 1 + rng.IntN(400)
				if rng.IntN(40) == 0 {
					bad[fmt.Sprintf("k%d.%d", g, i+1)] = true
				}
			}
			groups = append(groups, group(fmt.Sprintf("k%d", g), sizes...))
		}
		l := &fakeLink{maxBatch: 1000 + rng.IntN(4000), maxMessage: 400, refuse: func(ids []string, _ map[string]bool) error {
			if slices.ContainsFunc(ids, func(id string) bool { return bad[id] }) {
				return rejected(amqp.ErrCondNotAllowed)
			}
			return nil
		}}
		p := publisherOver(t, l, &PublisherOptions{PackKeys: rng.IntN(2) == 0, limits: limits{packMessages: 1 + rng.IntN(30), inFlight: 1 + rng.IntN(8), batchMessages: 1 + rng.IntN(20)}})
		err := p.Publish(t.Context(), groups)
		if l.overlap != nil {
			t.Fatal(l.overlap)
		}
		failed := map[int]int{}
		if e, ok := errors.AsType[*relay.PublishError](err); ok {
			for _, k := range e.Keys {
				failed[k.Group] = k.Sent
			}
		}
		for i, g := range groups {
			var want []string
			for _, m := range g.Messages {
				if bad[m.ID] {
					break
				}
				want = append(want, m.ID)
			}
			if diff := cmp.Diff(want, l.accepted[g.Key]); diff != "" {
				t.Fatalf("accepted of %s (-want +got):\n%s", g.Key, diff)
			}
			if sent, stopped := failed[i]; stopped != (len(want) < len(g.Messages)) || stopped && sent != len(want) {
				t.Fatalf("%s reported as stopped %v after %d, want after %d of %d", g.Key, stopped, sent, len(want), len(g.Messages))
			}
		}
	}
}

func TestSentReportsTheContentOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := rejected("com.microsoft:server-busy")
		l := &fakeLink{delay: time.Second, refuse: func(_ []string, keys map[string]bool) error {
			if keys["d"] {
				return busy
			}
			return nil
		}}
		var reports []relay.BatchReport
		p := publisherOver(t, l, &PublisherOptions{PackKeys: true, limits: limits{packMessages: 4, inFlight: 1}, Sent: func(_ context.Context, r relay.BatchReport) {
			reports = append(reports, r)
		}})
		err := p.Publish(t.Context(), []relay.Group{group("a", 1, 1), group("b", 1), group("c", 1), group("d", 1)})
		wantFailed(t, err, "d after 0: outage server_busy")
		if len(reports) != 2 || !errors.Is(reports[1].Err, busy) {
			t.Fatalf("reported %+v, want two batches, the second busy", reports)
		}
		reports[1].Err = nil
		if want := []relay.BatchReport{{Keys: 3, Messages: 4, Accepted: 4, Took: time.Second}, {Keys: 1, Messages: 1, Took: time.Second}}; !slices.Equal(reports, want) {
			t.Errorf("reported %+v, want %+v", reports, want)
		}
	})
}

func TestTopicsCloseEveryLink(t *testing.T) {
	for _, closing := range []error{nil, errors.New("away")} {
		links := []*fakeLink{{closing: closing}, {closing: closing}, {closing: closing}}
		topics := &Topics{byName: map[string]*Publisher{}}
		for i, l := range links {
			topics.byName[fmt.Sprint(i)] = publisherOver(t, l, nil)
		}
		topics.shards = []*Publisher{topics.byName["0"]}
		if err := topics.Close(t.Context()); !errors.Is(err, closing) {
			t.Errorf("closed with %v, want %v", err, closing)
		}
		for i, l := range links {
			if l.closed != 1 {
				t.Errorf("link %d was closed %d times", i, l.closed)
			}
		}
	}
}

// A topic has one link for all its actions. Consecutive messages for a topic share a batch.
func TestActionsShareTheLinkOfTheirTopic(t *testing.T) {
	topics, err := NewTopics(&Client{}, "contacts", map[string]string{"Changed": "contacts", "Moved": "moves", "Gone": "moves"}, &PublisherOptions{PackKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]*fakeLink{}
	for name, p := range topics.byName {
		links[name] = &fakeLink{maxBatch: 1 << 20, maxMessage: 1 << 20}
		p.link = links[name]
	}
	groups := []relay.Group{group("a", 1, 1), group("b", 1), group("c", 1)}
	groups[0].Messages[1].Action, groups[1].Messages[0].Action = "Moved", "Gone"
	if err := topics.Publish(t.Context(), groups); err != nil {
		t.Fatal(err)
	}
	contacts, moves := links["contacts"], links["moves"]
	if len(links) != 2 || topics.byAction["Changed"] != topics.shards[0] || topics.byAction["Moved"] != topics.byAction["Gone"] {
		t.Errorf("%d links, want one per topic", len(links))
	}
	if contacts.batches != 1 || contacts.alone != 0 || moves.alone != 2 {
		t.Errorf("%d batches and %d messages alone to one, %d alone to the other; want 1, 0 and 2", contacts.batches, contacts.alone, moves.alone)
	}
}

func TestNewPublisherRequiresAClientAndATopic(t *testing.T) {
	if _, err := NewPublisher(nil, "contacts", nil); err == nil {
		t.Error("NewPublisher accepts a nil client")
	}
	if _, err := NewPublisher(&Client{}, "", nil); err == nil {
		t.Error("NewPublisher accepts an empty name")
	}
	if _, err := NewTopics(&Client{}, "", nil, nil); err == nil {
		t.Error("NewTopics accepts an empty topic")
	}
	if _, err := NewTopics(&Client{}, "contacts", map[string]string{"Moved": ""}, nil); err == nil {
		t.Error("NewTopics accepts an empty topic of an action")
	}
}

// What a publisher of the relay reports goes to the log of the relay.
func TestPublisherOfTheRelayHasItsLog(t *testing.T) {
	broker, err := NewRelayBroker(&Client{}, &RelayBrokerOptions{Topic: "contacts"})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	opened, err := broker.Open(log, func(context.Context, relay.BatchReport) {})
	if err != nil {
		t.Fatal(err)
	}
	for topic, p := range opened.(*Topics).byName {
		if p.opts.Logger != log {
			t.Errorf("the publisher of %s has another log", topic)
		}
	}
}
