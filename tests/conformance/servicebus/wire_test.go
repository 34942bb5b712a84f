package main

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/lab/wire"
	"feedbox/infrastructure/lab/wire/buswire"
)

// TestWire runs one script for each wire behaviour that Feedbox relies on, through
// azservicebus. By default it starts the project's emulator; the environment names
// another endpoint (Azure, Microsoft's emulator, ours in another process):
//
//	FEEDBOX_TEST_SERVICEBUS_CONNECTION_STRING  of a key with the rights Send and Listen
//	FEEDBOX_TEST_SERVICEBUS_TOPIC              default contacts; with duplicate detection
//	FEEDBOX_TEST_SERVICEBUS_SUBSCRIPTION       default contacts; with sessions, expired messages dead-lettered
//
// The subscription must be idle, because another consumer would receive the messages of the scripts.
func TestWire(t *testing.T) {
	topic := cmp.Or(os.Getenv("FEEDBOX_TEST_SERVICEBUS_TOPIC"), "contacts")
	subscription := cmp.Or(os.Getenv("FEEDBOX_TEST_SERVICEBUS_SUBSCRIPTION"), "contacts")
	connection, ours := os.Getenv("FEEDBOX_TEST_SERVICEBUS_CONNECTION_STRING"), false
	if connection == "" {
		ours = true
		connection = busemu.StartT(t, &busemu.Options{Topology: &busemu.Topology{Topics: []busemu.Topic{{
			Name: topic, RequiresDuplicateDetection: true,
			Subscriptions: []busemu.Subscription{{Name: subscription, RequiresSession: true, DeadLetteringOnExpiration: true}},
		}}}}).ConnectionString()
	}
	w, closeAll, err := buswire.Open(connection, topic, subscription)
	if err != nil {
		t.Fatalf("FEEDBOX_TEST_SERVICEBUS_CONNECTION_STRING: %v", err)
	}
	w.Emulator = ours
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := closeAll(ctx); err != nil {
			t.Logf("close the clients: %v", err)
		}
	})
	for i := range buswire.Scripts {
		s := &buswire.Scripts[i]
		t.Run(s.Name, func(t *testing.T) {
			if o := w.Play(t.Context(), s); o.Verdict != wire.Confirmed {
				t.Errorf("%s: %s", o.Verdict, strings.Join(o.Details, "\n"))
			}
		})
	}
}

// UNVERIFIED.md names every script, and no other.
func TestScriptsAreListed(t *testing.T) {
	listed := wire.Scripts()
	for i := range buswire.Scripts {
		name := "servicebus/" + buswire.Scripts[i].Name
		if !listed[name] {
			t.Errorf("UNVERIFIED.md does not name the script %s", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		if strings.HasPrefix(name, "servicebus/") {
			t.Errorf("UNVERIFIED.md names a script %s that does not exist", name)
		}
	}
}
