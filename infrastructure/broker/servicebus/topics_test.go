package servicebus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/relay/monitor"
)

// A failure at one topic blocks later messages of its keys for all topics, and no other keys.
func TestKeyKeepsItsOrderAcrossTopics(t *testing.T) {
	server := busemu.StartT(t, &busemu.Options{Topology: &busemu.Topology{Topics: []busemu.Topic{
		{Name: "usual", Subscriptions: []busemu.Subscription{{Name: "all", RequiresSession: true}}},
	}}})
	client, err := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: server.ConnectionString()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(t.Context()) }()
	topics, err := servicebus.NewTopics(client, "usual", map[string]string{"Other": "missing"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	group := func(key string, actions ...string) relay.Group {
		g := relay.Group{Key: key}
		for i, action := range actions {
			g.Messages = append(g.Messages, relay.Message{ID: key + string(rune('a'+i)), Key: key, Action: action, Body: []byte(`{}`)})
		}
		return g
	}
	err = topics.Publish(t.Context(), []relay.Group{group("k", "Usual", "Usual", "Other", "Usual"), group("l", "Usual", "Usual"), group("m", "Other", "Usual")})
	failed, ok := errors.AsType[*relay.PublishError](err)
	if !ok || len(failed.Keys) != 2 || failed.Keys[0].Group != 0 || failed.Keys[0].Sent != 2 || failed.Keys[1].Group != 2 || failed.Keys[1].Sent != 0 {
		t.Fatalf("failed: %+v, %v", failed, err)
	}
	messages, err := server.Peek("usual/subscriptions/all", 10)
	if err != nil || len(messages) != 4 {
		t.Errorf("%d messages arrived, %v; want those before the first failure of each key", len(messages), err)
	}
	if err := topics.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The broker fails as long as one of its topics does, whatever the others answer.
func TestMissingTopicOfAnActionIsNotHiddenByOthers(t *testing.T) {
	server := busemu.StartT(t, &busemu.Options{Topology: &busemu.Topology{Topics: []busemu.Topic{{Name: "usual"}}}})
	client, err := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: server.ConnectionString()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(t.Context()) }()
	for _, o := range []servicebus.RelayBrokerOptions{
		{Topic: "usual", Topics: map[string]string{"Other": "missing"}}, {Topic: "missing", Topics: map[string]string{"Usual": "usual"}},
	} {
		broker, err := servicebus.NewRelayBroker(client, &o)
		if err != nil {
			t.Fatal(err)
		}
		needs := monitor.NewDependencies(time.Now, broker.Name)
		topics, err := broker.Open(slog.New(slog.DiscardHandler), func(_ context.Context, r relay.BatchReport) { needs[broker.Name].Batch(r) })
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range []string{"Other", "Usual"} {
			err := topics.Publish(t.Context(), []relay.Group{{Key: action, Messages: []relay.Message{{ID: action, Key: action, Action: action, Body: []byte(`{}`)}}}})
			if (err != nil) != (action == "Other") {
				t.Errorf("%s: %v", action, err)
			}
		}
		if state := needs.States()[broker.Name]; state.Status != "failing" {
			t.Errorf("the broker is %s, and its topic is missing", state.Status)
		}
		if err := topics.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The shard of a key must never change, because a running system would overtake its own events.
func TestShardOfAKeyIsStable(t *testing.T) {
	server := busemu.StartT(t, nil)
	client, err := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: server.ConnectionString()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(t.Context()) }()
	for n, want := range map[int]string{1: "000000", 2: "101001", 3: "202001", 256: ""} {
		o := &servicebus.RelayBrokerOptions{Topic: "all"}
		for i := range n {
			o.Shards = append(o.Shards, servicebus.Shard{Name: fmt.Sprint(i), Topic: fmt.Sprint(i)})
		}
		b, err := servicebus.NewRelayBroker(client, o)
		if err != nil {
			t.Fatal(err)
		}
		got, counts := "", make([]int, n)
		for i := range 60_000 {
			shard := b.ShardOf(fmt.Sprint("key-", i))
			if counts[shard]++; i < 6 {
				got += fmt.Sprint(shard)
			}
		}
		if want != "" && got != want || slices.Min(counts)*10 < 60_000/n*7 || len(b.Shards) != n {
			t.Errorf("%d shards: the first keys have %s, want %s; keys of each: %v", n, got, want, counts)
		}
	}
	for _, shards := range [][]servicebus.Shard{{{Name: "a"}}, {{Topic: "a"}}, {{Name: "a", Topic: "a"}, {Name: "a", Topic: "b"}}, {{Name: "a", Topic: "a"}, {Name: "b", Topic: "a"}}, make([]servicebus.Shard, 257)} {
		if _, err := servicebus.NewRelayBroker(client, &servicebus.RelayBrokerOptions{Topic: "all", Shards: shards}); err == nil {
			t.Errorf("accepted %v", shards[:1])
		}
	}
}

// twoNamespaces starts two namespaces with the same topics.
func twoNamespaces(t *testing.T, names ...string) (clients []*servicebus.Client, servers []*busemu.Server) {
	t.Helper()
	for range 2 {
		var topics []busemu.Topic
		for _, name := range names {
			topics = append(topics, busemu.Topic{Name: name, Subscriptions: []busemu.Subscription{{Name: "all", RequiresSession: true}}})
		}
		server := busemu.StartT(t, &busemu.Options{Topology: &busemu.Topology{Topics: topics}})
		client, err := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: server.ConnectionString()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close(context.Background()) }) // the context of the test has ended
		clients, servers = append(clients, client), append(servers, server)
	}
	return clients, servers
}

// The topic of an action is one of the default namespace, even if a shard in another one has its name.
func TestTopicOfAnActionIsInTheDefaultNamespace(t *testing.T) {
	clients, servers := twoNamespaces(t, "events")
	b, err := servicebus.NewRelayBroker(clients[0], &servicebus.RelayBrokerOptions{
		Topic: "all", Topics: map[string]string{"Other": "events"},
		Shards: []servicebus.Shard{{Name: "far", Topic: "events", Client: clients[1]}},
	})
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := b.Open(slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	messages := []relay.Message{{ID: "a", Key: "k", Action: "E", Body: []byte(`{}`)}, {ID: "b", Key: "k", Action: "Other", Body: []byte(`{}`)}}
	if err := errors.Join(publisher.Publish(t.Context(), []relay.Group{{Key: "k", Messages: messages}}), publisher.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"b", "a"} {
		got, err := servers[i].Peek("events/subscriptions/all", 10)
		if err != nil || len(got) != 1 || got[0].ID != want {
			t.Errorf("namespace %d has %+v, %v; want %s", i, got, err, want)
		}
	}
}

// Shards may be topics of the same name in two namespaces. An exception by action goes to the default
// namespace, in the order of the key.
func TestKeysAreDividedAmongNamespaces(t *testing.T) {
	clients, servers := twoNamespaces(t, "events", "audit")
	b, err := servicebus.NewRelayBroker(clients[0], &servicebus.RelayBrokerOptions{
		Topic: "all", Topics: map[string]string{"Other": "audit"},
		Shards: []servicebus.Shard{{Name: "events", Topic: "events"}, {Name: "events@2", Topic: "events", Client: clients[1]}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	accepted := map[string]int{}
	publisher, err := b.Open(slog.New(slog.DiscardHandler), func(_ context.Context, r relay.BatchReport) {
		mu.Lock()
		defer mu.Unlock()
		accepted[r.Shard] += r.Accepted
	})
	if err != nil {
		t.Fatal(err)
	}
	var groups []relay.Group
	want := [2]int{}
	for i := range 20 {
		key := fmt.Sprint("key-", i)
		want[b.ShardOf(key)] += 2
		groups = append(groups, relay.Group{Key: key, Messages: []relay.Message{
			{ID: key + "a", Key: key, Action: "E", Body: []byte(`{}`)}, {ID: key + "b", Key: key, Action: "Other", Body: []byte(`{}`)}, {ID: key + "c", Key: key, Action: "E", Body: []byte(`{}`)},
		}})
	}
	if err := errors.Join(publisher.Publish(t.Context(), groups), publisher.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i, server := range servers {
		messages, err := server.Peek("events/subscriptions/all", 100)
		if err != nil || len(messages) != want[i] || want[i] == 0 {
			t.Errorf("namespace %d has %d messages, want %d; %v", i, len(messages), want[i], err)
		}
		for _, m := range messages {
			if m.Session == nil || b.ShardOf(*m.Session) != i || m.Properties["cloudEvents_source"] != "/all" {
				t.Errorf("namespace %d has %+v", i, m)
			}
		}
		if other, err := server.Peek("audit/subscriptions/all", 100); err != nil || len(other) != 20*(1-i) {
			t.Errorf("namespace %d has %d messages by action, %v", i, len(other), err)
		}
	}
	if accepted["events"] != want[0] || accepted["events@2"] != want[1] || accepted["audit"] != 20 {
		t.Errorf("reports: %v, want %v", accepted, want)
	}
}
