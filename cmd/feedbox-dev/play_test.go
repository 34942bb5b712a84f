package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"feedbox/infrastructure/lab/playground"
	"feedbox/infrastructure/lab/recorder"
)

// onFreePorts parses flags of feedbox-dev.
func onFreePorts(t *testing.T, args ...string) *options {
	t.Helper()
	opts := &options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.register(flags, true)
	args = append(args,
		"--api", "127.0.0.1:0", "--ops", "127.0.0.1:0", "--page", "127.0.0.1:0", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return opts
}

// playScript runs feedbox-dev --play --script on free ports, with short rounds.
func playScript(t *testing.T, tamper func(recorder.Arrival) []recorder.Arrival, args ...string) (out string, err error) {
	t.Helper()
	opts := onFreePorts(t, append(args, "--play", "--script", "--seed", "7", "--pause", "1500ms", "--relays", "2")...)
	opts.play.tamper = func(o *playground.Options) {
		o.Round, o.Tamper = 2*time.Second, tamper
		o.Patience = time.Minute // long, because the machine may be busy
		if tamper != nil {
			o.Patience = 15 * time.Second // short, because the test waits for all of it
		}
	}
	var printed bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	err = dev(ctx, opts, &printed, &printed, nil)
	return printed.String(), err
}

var (
	acknowledged = regexp.MustCompile(`acknowledged (\d+), arrived (\d+), lost 0, doubled 0, out of order 0\n`)
	processes    = regexp.MustCompile(`relay-\d \(process \d+\) killed`)
)

// The start page leads to the playground. In the playground it shows the rates of the relays, although
// they are processes of their own.
func TestStartPageLeadsToThePlayground(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ flags, want []string }{
		{nil, []string{`feedbox-dev(\.test)? --play</code>`, `href="/try"`}},
		{[]string{"--play", "--relays", "2", "--rate", "20"}, []string{`href="/play"`, `>2 running<`, `aria-label="Accepted">\s*<span class="name">Accepted</span>\s*<span class="value">[1-9]`}},
	} {
		e := startDev(t, onFreePorts(t, append(one.flags, "--ephemeral", "--ready-file", filepath.Join(t.TempDir(), "ready.json"))...))
		for _, want := range one.want {
			text, deadline := "", time.Now().Add(time.Minute)
			for ; !regexp.MustCompile(want).MatchString(text); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%q: the start page never has %s:\n%s", one.flags, want, text)
				}
				reply, err := http.Get(e.Page + "/")
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(reply.Body)
				if text = string(body); err != nil || reply.Body.Close() != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// No promise is broken when a relay process is killed under load.
func TestPlayScriptKeepsThePromise(t *testing.T) {
	t.Parallel()
	out, err := playScript(t, nil, "--faults", "kill=1s,clock")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := acknowledged.FindStringSubmatch(out)
	if m == nil || !processes.MatchString(out) || !strings.Contains(out, "seed 7") || !strings.Contains(out, "Move the clock") {
		t.Fatalf("the summary:\n%s", out)
	}
	if acked, _ := strconv.Atoi(m[1]); acked < 10 || m[1] != m[2] {
		t.Errorf("%s acknowledged and %s arrived", m[1], m[2])
	}
}

// Lost and doubled events break the verdict. Tampering with arrivals simulates a broken build.
func TestPlayScriptFindsABrokenBuild(t *testing.T) {
	t.Parallel()
	n := 0
	out, err := playScript(t, func(a recorder.Arrival) []recorder.Arrival {
		switch n++; n {
		case 4:
			return nil
		case 6:
			return []recorder.Arrival{a, a}
		}
		return []recorder.Arrival{a}
	}, "--faults", "clock")
	if exit := exitCode(err); exit != exitBroken {
		t.Errorf("exit code %d, want %d: %v\n%s", exit, exitBroken, err, out)
	}
	// The number of lost events is not fixed, because on a busy machine others may also arrive
	// after the patience.
	for _, want := range []string{"a promise is broken: I", `lost [1-9]\d*, doubled [1-9]`, "arrived twice"} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("want %q:\n%s", want, out)
		}
	}
}

// rejecting returns an API that rejects every request.
func rejecting(t *testing.T) *httptest.Server {
	t.Helper()
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(full.Close)
	return full
}

// A script in which no change is acknowledged proves nothing, so it must not end with success.
func TestPlayScriptFailsIfNothingWasAcknowledged(t *testing.T) {
	t.Parallel()
	full := rejecting(t)
	opts := onFreePorts(t, "--play", "--script", "--seed", "7", "--pause", "100ms", "--relays", "1", "--faults", "clock")
	opts.play.tamper = func(o *playground.Options) { o.API, o.Round, o.Patience = full.URL, 2*time.Second, time.Minute }
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := dev(ctx, opts, &out, &out, nil)
	if exit := exitCode(err); exit != exitFailure || !strings.Contains(err.Error(), "no change was acknowledged") {
		t.Errorf("exit code %d, want %d: %v\n%s", exit, exitFailure, err, out.String())
	}
	if !strings.Contains(out.String(), "acknowledged 0, arrived 0") {
		t.Errorf("the summary is missing:\n%s", out.String())
	}
}

// The page reports no kept promise before an event has arrived.
func TestPlaygroundShowsUnknownBeforeAnEvent(t *testing.T) {
	t.Parallel()
	full := rejecting(t)
	opts := onFreePorts(t, "--play", "--relays", "1", "--ephemeral", "--ready-file", filepath.Join(t.TempDir(), "ready.json"))
	opts.play.tamper = func(o *playground.Options) { o.API = full.URL }
	reply, err := http.Get(startDev(t, opts).Page + "/play")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.Body.Close() != nil {
		t.Fatal(err)
	}
	if text := string(body); !strings.Contains(text, "No event has arrived yet") || strings.Contains(text, "The promise holds") {
		t.Errorf("want an unknown verdict:\n%s", text)
	}
}
