package servicebus_test

import (
	"errors"
	"testing"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/emulator/busemu"
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
