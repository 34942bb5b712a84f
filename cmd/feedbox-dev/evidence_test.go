package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/servers"
)

// The walk of the README: run everything, put load on it, dump, verify.
func TestLoadDumpVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		var out, errOut bytes.Buffer
		ended <- run(ctx, []string{
			"--ephemeral", "--record", "--ready-file", in("ready.json"), "--api", "127.0.0.1:0", "--ops", "127.0.0.1:0", "--page", "127.0.0.1:0",
			"--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0",
		}, &out, &errOut, nil)
	}()
	defer func() {
		stop()
		if code := <-ended; code != exitOK {
			t.Errorf("feedbox-dev ended with code %d", code)
		}
	}()
	awaitReady(t, in("ready.json"))
	command := func(want int, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(t.Context(), args, &out, &errOut, nil); code != want {
			t.Fatalf("%s: exit code %d, want %d: %s%s", args, code, want, out.String(), errOut.String())
		}
		return out.String()
	}
	command(exitOK, "load", "--ready-file", in("ready.json"), "--history", in("history.jsonl"), "--changes", "300", "--contacts", "20", "--rate", "0")
	command(exitOK, "dump", "--ready-file", in("ready.json"), "--topic", in("topic.jsonl"), "--store", in("store.jsonl"), "--idle", "1s")
	files := []string{"verify", "--history", in("history.jsonl"), "--topic", in("topic.jsonl"), "--store", in("store.jsonl")}
	if out := command(exitOK, files...); !strings.Contains(out, "nothing acknowledged is lost: 300 changes acknowledged") {
		t.Errorf("verdict:\n%s", out)
	}

	// A poison event breaks no promise, but dump reports it.
	command(exitOK, "poison", "--ready-file", in("ready.json"))
	if out := command(exitOK, "dump", "--ready-file", in("ready.json"), "--store", in("store.jsonl")); !strings.Contains(out, "it has no action") {
		t.Errorf("dump:\n%s", out)
	}
	command(exitOK, files...)

	// A missing message is a breach.
	text, err := os.ReadFile(in("topic.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	if err := os.WriteFile(in("topic.jsonl"), rest, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := command(exitBroken, files...); !strings.Contains(out, "I2 event ") {
		t.Errorf("verdict:\n%s", out)
	}
}

// A load ends if no API runs, and continues through a restart of the API.
func TestLoadEndsOnlyIfNoAPIRuns(t *testing.T) {
	var fail error
	refused := 0
	d := &dialing{refused: func() { refused++ }, next: replies(func(*http.Request) (*http.Response, error) { return nil, fail })}
	for i, one := range []struct {
		err  error
		want int
	}{{syscall.ECONNRESET, 0}, {syscall.ECONNREFUSED, 1}, {nil, 1}, {syscall.ECONNREFUSED, 1}} {
		fail = one.err
		if _, err := d.RoundTrip(nil); !errors.Is(err, one.err) || refused != one.want {
			t.Errorf("request %d: %v, refused %d times, want %d", i, err, refused, one.want)
		}
	}
}

type replies func(*http.Request) (*http.Response, error)

func (r replies) RoundTrip(q *http.Request) (*http.Response, error) { return r(q) }

// Keys wait at gaps for a while. A dump that ended meanwhile would leave their messages.
func TestDumpTakesEveryMessageBehindAGap(t *testing.T) {
	t.Parallel()
	server := servers.StartRabbitMQ(t)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r, e := &rabbit{u}, &endpoints{Topic: "contacts"}
	client, err := r.client()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := rabbitmq.Declare(t.Context(), client, e.Topic, r.group(e, recording)); err != nil {
		t.Fatal(err)
	}
	publisher, err := rabbitmq.NewPublisher(client, e.Topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	const keys, each = 20, 4
	var groups []relay.Group
	for k := range keys {
		g := relay.Group{Key: fmt.Sprint("key-", k)}
		for n := range each {
			id, sequence := fmt.Sprint(k, "-", n), int64(2*n+1) // every second event is missing
			g.Messages = append(g.Messages, relay.Message{ID: id, Key: g.Key, Action: "Happened", Body: []byte("{}"), Sequence: sequence, AggregateVersion: sequence})
		}
		groups = append(groups, g)
	}
	if err := publisher.Publish(t.Context(), groups); err != nil {
		t.Fatal(err)
	}
	var taken atomic.Int64
	if err := r.empty(t.Context(), e, recording, 50*time.Millisecond, func(messageRecord) { taken.Add(1) }); err != nil || taken.Load() != keys*each {
		t.Errorf("%d messages of %d, %v", taken.Load(), keys*each, err)
	}
}

// An event that waits keeps the dump running, whatever the pause between attempts. An event that is
// never settled, as after a loss of the broker, ends it with an error.
func TestDumpEndsWhenNoEventWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 9)
		q := newQuiet(10*time.Second, 2*time.Second, func() { ended <- time.Now() })
		settle := func(id string, action consumer.Action) {
			q.observe(t.Context(), consumer.Outcome{Event: &consumer.Event{ID: id}, Action: action})
		}
		settle("1", consumer.Abandoned)
		time.Sleep(time.Minute)
		settle("2", consumer.Abandoned)
		settle("1", consumer.Handled)
		time.Sleep(time.Minute)
		settle("2", consumer.Dropped) // redelivered
		last := time.Now()
		if took := (<-ended).Sub(last); took != 2*time.Second || q.left() != nil {
			t.Errorf("the dump ended %v after the last event, want 2 s: %v", took, q.left())
		}
		settle("3", consumer.Abandoned)
		last = time.Now()
		if took := (<-ended).Sub(last); took != 2*time.Second+answerTimeout || q.left() == nil {
			t.Errorf("the dump ended %v after an event that is not settled: %v", took, q.left())
		}
	})
}

// The table has a row for each broken promise, also for those that it otherwise omits.
func TestVerifyTableShowsEachBrokenPromise(t *testing.T) {
	shared := goodStore + `{"kind":"event","id":"a1","key":"b","action":"Renamed","version":1,"sequence":2}` + "\n"
	code, out, _ := verifyFiles(t, goodHistory, goodTopic, shared)
	if code != exitBroken || !regexp.MustCompile(`(?m)^I10 +1 `).MatchString(out) {
		t.Errorf("exit code %d, want %d and a row of I10:\n%s", code, exitBroken, out)
	}
	var table bytes.Buffer
	if err := printVerdict(&table, verify.Judge(verify.Run{Other: []string{"a goroutine leaked", "Item 5 has no key"}}, true)); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^other +2 `).MatchString(table.String()) {
		t.Errorf("want a row of both other findings:\n%s", &table)
	}
}

// A load of which every request was rejected has changed nothing, so it must not end with success.
func TestLoadFailsIfEveryRequestWasRejected(t *testing.T) {
	t.Parallel()
	full := rejecting(t)
	var out, errOut bytes.Buffer
	args := []string{"load", "--api", full.URL, "--history", filepath.Join(t.TempDir(), "history.jsonl"), "--contacts", "2", "--changes", "5", "--rate", "0"}
	if code := run(t.Context(), args, &out, &errOut, nil); code != exitFailure || !strings.Contains(errOut.String(), "all of 5 requests") {
		t.Errorf("exit code %d, want %d: %s%s", code, exitFailure, out.String(), errOut.String())
	}
}
