package main

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"feedbox/infrastructure/lab/playground"
	"feedbox/infrastructure/lab/recorder"
)

// playScript runs feedbox-dev --play --script on free ports, with short rounds.
func playScript(t *testing.T, tamper func(recorder.Arrival) []recorder.Arrival, args ...string) (out string, err error) {
	t.Helper()
	opts := &options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.register(flags, true)
	args = append(args, "--play", "--script", "--seed", "7", "--pause", "1500ms", "--relays", "2",
		"--api", "127.0.0.1:0", "--ops", "127.0.0.1:0", "--page", "127.0.0.1:0", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	opts.play.tamper = func(o *playground.Options) {
		o.Round, o.Tamper = 2*time.Second, tamper
		o.Patience = time.Minute // long, because the machine may be busy
		if tamper != nil {
			o.Patience = 15 * time.Second // short, because the test waits for all of it
		}
	}
	var printed bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err = dev(ctx, opts, &printed, &printed, nil)
	return printed.String(), err
}

var (
	acknowledged = regexp.MustCompile(`acknowledged (\d+), arrived (\d+), lost 0, doubled 0, out of order 0\n`)
	processes    = regexp.MustCompile(`relay-\d \(process \d+\) killed`)
)

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
