package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rogpeppe/go-internal/testscript"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
	"feedbox/infrastructure/emulator/cosmosemu"
)

func keyAndNumber(ts *testscript.TestScript, neg bool, args []string) (string, int) {
	if neg || len(args) != 2 {
		ts.Fatalf("want KEY N, got %q", args)
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	return args[0], n
}

func seed(ts *testscript.TestScript, neg bool, args []string) {
	key, n := keyAndNumber(ts, neg, args)
	w := worldOf(ts)
	for range n {
		w.sent[key]++
		_, err := w.data.CreateItem(context.Background(), azcosmos.NewPartitionKeyString(key), eventDocument(key, w.sent[key]), nil)
		ts.Check(err)
	}
}

// poison appends an event that no relay can send, because it has no action.
func poison(ts *testscript.TestScript, neg bool, args []string) {
	key, n := keyAndNumber(ts, neg, args)
	document := bytes.Replace(eventDocument(key, n), []byte(`"action":`), []byte(`"act":`), 1)
	_, err := worldOf(ts).data.CreateItem(context.Background(), azcosmos.NewPartitionKeyString(key), document, nil)
	ts.Check(err)
}

// edit replaces event n of a key by a valid one.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	key, n := keyAndNumber(ts, neg, args)
	_, err := worldOf(ts).data.UpsertItem(context.Background(), azcosmos.NewPartitionKeyString(key), eventDocument(key, n), nil)
	ts.Check(err)
}

// correction writes a valid document of event n of a key to KEY.json, and the version of the stored one to
// the variable VERSION, which is empty if there is none.
func correction(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 3 {
		correctionOfConsumer(ts, neg, args)
		return
	}
	key, n := keyAndNumber(ts, neg, args)
	ts.Check(os.WriteFile(ts.MkAbs(key+".json"), eventDocument(key, n), 0o600))
	stored, err := worldOf(ts).data.ReadItem(context.Background(), azcosmos.NewPartitionKeyString(key), eventID(key, n), nil)
	ts.Setenv("VERSION", "")
	if err == nil {
		ts.Setenv("VERSION", string(stored.ETag))
	}
}

// correctionOfConsumer is correction for an event that the consumer args[2] has parked.
func correctionOfConsumer(ts *testscript.TestScript, neg bool, args []string) {
	key, n := keyAndNumber(ts, neg, args[:2])
	lot, err := worldOf(ts).lot.Of(args[2])
	ts.Check(err)
	events, err := lot.First(context.Background(), key, 100, 1<<20)
	ts.Check(err)
	corrected := strings.Replace(string(events[n-1].Document), `"broken"`, `"corrected"`, 1)
	ts.Check(os.WriteFile(ts.MkAbs(key+".json"), []byte(corrected), 0o600))
	ts.Setenv("VERSION", fmt.Sprintf("%x", sha256.Sum256(events[n-1].Document))[:16])
}

func remove(ts *testscript.TestScript, neg bool, args []string) {
	key, n := keyAndNumber(ts, neg, args)
	_, err := worldOf(ts).data.DeleteItem(context.Background(), azcosmos.NewPartitionKeyString(key), eventID(key, n), nil)
	ts.Check(err)
}

func park(ts *testscript.TestScript, neg bool, args []string) {
	parkAs(ts, neg, args, relay.Closing{Reason: "too_large", Error: "refused: too_large: the message is 1,200,000 bytes"}, 3)
}

func parkWaiting(ts *testscript.TestScript, neg bool, args []string) {
	parkAs(ts, neg, args, relay.Closing{Reason: "busy", Error: "outage: busy", Auto: true}, 0)
}

// parkConsumer parks events of a consumer, which is the first argument.
func parkConsumer(ts *testscript.TestScript, neg bool, args []string) {
	lot, err := worldOf(ts).lot.Of(args[0])
	ts.Check(err)
	parkIn(ts, neg, lot, args[1:], relay.Closing{Reason: "too_large", Error: "the handler cannot take it"}, 3, func(key string, n int) []byte {
		document, err := handling.EncodeEvent(&consumer.Event{ID: eventID(key, n), Key: key, Action: "ContactNameUpdatedEvent", Sequence: int64(n), Body: []byte(`{"name":"broken"}`)})
		ts.Check(err)
		return document
	})
}

func parkAs(ts *testscript.TestScript, neg bool, args []string, closing relay.Closing, attempts int) {
	parkIn(ts, neg, worldOf(ts).lot, args, closing, attempts, eventDocument)
}

func parkIn(ts *testscript.TestScript, neg bool, lot relay.ParkedStore, args []string, closing relay.Closing, attempts int, document func(key string, n int) []byte) {
	key, n := keyAndNumber(ts, neg, args)
	at := time.Now().Add(-3 * time.Minute).UTC()
	events := make([]relay.ParkedEvent, n)
	for i := range events {
		events[i] = relay.ParkedEvent{
			ID: eventID(key, i+1), Key: key, Action: "ContactNameUpdatedEvent", Document: document(key, i+1),
			LSN: int64(i + 1), Sequence: int64(i + 1), Reason: "held", ParkedAt: at,
		}
	}
	events[0].Reason, events[0].Error, events[0].Attempts = closing.Reason, closing.Error, attempts
	closing.Event, closing.At = events[0].ID, at
	_, err := lot.Park(context.Background(), key, events, &closing)
	ts.Check(err)
}

// expiring creates a container with a default TTL and sets a variable to its name.
func expiring(ts *testscript.TestScript, _ bool, args []string) {
	name := "expiring-" + args[1]
	ts.Check(worldOf(ts).cosmos.CreateContainer(database, cosmosemu.ContainerProps{ID: name, PartitionKey: []string{"/" + args[1]}, DefaultTTL: 3600}))
	ts.Setenv(args[0], name)
}

// patience is long because a loaded machine may be slow.
const patience = 2 * time.Minute

// await polls until ok returns true, because other processes cannot run in a bubble.
func await(ts *testscript.TestScript, what string, ok func() bool) {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func awaitSent(ts *testscript.TestScript, neg bool, args []string) {
	distinct := len(args) == 2 && args[1] == "distinct"
	if neg || len(args) != 1 && !distinct {
		ts.Fatalf("want a number, and perhaps distinct; got %q", args)
	}
	want, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	await(ts, "messages accepted by the topic", func() bool {
		c, err := worldOf(ts).bus.Counters(topic)
		ts.Check(err)
		got := c.Accepted
		if distinct {
			got -= c.Duplicates
		}
		if got > want {
			ts.Fatalf("the topic accepted %d messages, want %d", got, want)
		}
		return got == want
	})
}

func awaitParked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("want a key, got %q", args)
	}
	await(ts, "the key is parked", func() bool {
		_, err := worldOf(ts).lot.Gate(context.Background(), args[0])
		if err != nil && !fault.Is(err, fault.NotFound) {
			ts.Check(err)
		}
		return err == nil
	})
}

func awaitIdle(ts *testscript.TestScript, _ bool, _ []string) {
	await(ts, "checkpoints past all changes", func() bool {
		lags, err := worldOf(ts).leases.Lag(context.Background())
		ts.Check(err)
		return len(lags) > 0 && !slices.ContainsFunc(lags, func(l changefeed.RangeLag) bool { return !l.Known || l.Transactions > 0 })
	})
}

func awaitDone(ts *testscript.TestScript, _ bool, _ []string) {
	await(ts, "requests to the owners are done", func() bool {
		found, err := worldOf(ts).leases.Leases(context.Background())
		ts.Check(err)
		return !slices.ContainsFunc(found, func(l changefeed.Lease) bool { return l.Request.Release || l.Request.Rewind != nil })
	})
}

// awaitRequest waits for a request to the account, which shows that the process is running.
func awaitRequest(ts *testscript.TestScript, _ bool, _ []string) {
	var seen atomic.Bool
	defer worldOf(ts).cosmos.Control(cosmosemu.OpAny, func(*cosmosemu.Call) *cosmosemu.Fault {
		seen.Store(true)
		return nil
	})()
	await(ts, "a request", seen.Load)
}

// exits runs a command, keeps its output and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("want CODE COMMAND..., got %q", args)
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%q exits with %d, want %d", args[1:], got, want)
	}
}

// weakAccount makes the script use an account with Eventual consistency.
func weakAccount(ts *testscript.TestScript, _ bool, _ []string) {
	emulator, err := cosmosemu.Start(&cosmosemu.Options{Consistency: "Eventual"})
	ts.Check(err)
	ts.Defer(func() { _ = emulator.Close() })
	ts.Check(createContainers(emulator))
	ts.Setenv("FEEDBOX_COSMOS_ENDPOINT", emulator.Endpoint())
}

func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	await(ts, args[0], func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// deadLetter sends N events of a key and dead-letters them, as a consumer does.
func deadLetter(ts *testscript.TestScript, neg bool, args []string) {
	key, n := keyAndNumber(ts, neg, args)
	w, ctx := worldOf(ts), context.Background()
	client := w.bus.Client()
	sender, err := client.NewSender(topic, nil)
	ts.Check(err)
	for i := range n {
		id := eventID(key, i+1)
		ts.Check(sender.SendMessage(ctx, &azservicebus.Message{
			MessageID: &id, SessionID: &key, Body: []byte(`{"a":"bad"}`), ApplicationProperties: map[string]any{"sequence": int64(i + 1)},
		}, nil))
	}
	session, err := client.AcceptSessionForSubscription(ctx, topic, subscription, key, nil)
	ts.Check(err)
	reason, description := "unknown_schema", "no decoder of version 7"
	for left := n; left > 0; left-- {
		some, err := session.ReceiveMessages(ctx, 1, nil)
		ts.Check(err)
		ts.Check(session.DeadLetterMessage(ctx, some[0], &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description}))
	}
	ts.Check(client.Close(ctx))
}

// take receives the messages of a key and checks their events and bodies, written as EVENT=BODY.
func take(ts *testscript.TestScript, neg bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := worldOf(ts).bus.Client()
	session, err := client.AcceptSessionForSubscription(ctx, topic, subscription, args[0], nil)
	ts.Check(err)
	for _, want := range args[1:] {
		some, err := session.ReceiveMessages(ctx, 1, nil)
		ts.Check(err)
		event, _ := some[0].ApplicationProperties["eventId"].(string)
		if got := event + "=" + string(some[0].Body); got != want {
			ts.Fatalf("received %s, want %s", got, want)
		}
		ts.Check(session.CompleteMessage(ctx, some[0], nil))
	}
	ts.Check(client.Close(ctx))
}

// awaitStdout runs a command until a line of its output matches.
func awaitStdout(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("want PATTERN COMMAND..., got %q", args)
	}
	want := regexp.MustCompile("(?m)" + args[0])
	await(ts, strings.Join(args[1:], " ")+" shows "+args[0], func() bool {
		time.Sleep(200 * time.Millisecond) // each check starts a process
		_ = ts.Exec(args[1], args[2:]...)  // only the output counts, not the exit code
		return want.MatchString(ts.ReadFile("stdout"))
	})
}

// narrow fails if a line of the last output, or of its first N lines, is longer than 80
// characters.
func narrow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("want nothing or N, got %q", args)
	}
	left := -1
	if len(args) == 1 {
		var err error
		left, err = strconv.Atoi(args[0])
		ts.Check(err)
	}
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if left == 0 {
			return
		}
		left--
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			ts.Fatalf("%d characters: %s", n, line)
		}
	}
}
