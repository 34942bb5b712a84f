package main

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// A file that calls confirm declares the flag --yes, or the file of its command does.
// Otherwise the command could not run in a script.
func TestEveryConfirmationHasTheYesFlag(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	confirming := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		confirms, flagged := false, false
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				confirms = confirms || f.Sel.Name == "confirm"
			case *ast.Ident:
				flagged = flagged || f.Name == "yesFlag"
			}
			return true
		})
		if !confirms {
			continue
		}
		confirming++
		for command, way := range map[string]string{"replay.go": "replay_", "parked_retry.go": "parked_retry_", "deadletters.go": "deadletters_"} {
			if strings.HasPrefix(name, way) { // one command in several files
				flagged = declaresYes(t, command)
			}
		}
		if !flagged {
			t.Errorf("%s asks for a confirmation without the flag --yes", name)
		}
	}
	if confirming < 5 {
		t.Errorf("only %d files call confirm", confirming)
	}
}

func declaresYes(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "yesFlag(cmd")
}

// An empty name, for example of a variable that is not set, is no prefix of the only lease.
func TestEmptyNameIsNoLease(t *testing.T) {
	leases := []changefeed.Lease{{ID: "feedboxmemory_db_coll..00-FF", Token: "-FF"}}
	if l, err := new(program).leaseNamed(leases, ""); err == nil {
		t.Errorf("an empty name is lease %s", l.ID)
	}
	if _, err := new(program).leaseNamed(leases, changefeed.LeaseName(leases[0].ID)[:1]); err != nil {
		t.Error(err)
	}
}

// Events that could not be counted are not zero.
func TestRestartAsksAboutUnknownEvents(t *testing.T) {
	for want, of := range map[string][2]int{"these 5 events are": {5, 0}, "at least 0 events, and an unknown number of 2 ranges that could not be read, are": {0, 2}} {
		if got := resent(of[0], of[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A restart reads the whole feed before it asks, which may take longer than a quick command may.
func TestRestartReadsAsLongAsItTakes(t *testing.T) {
	defer func(was time.Duration) { answerTimeout = was }(answerTimeout)
	answerTimeout = 6 * time.Second
	emulator, err := cosmosemu.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = emulator.Close() }()
	for _, c := range []cosmosemu.ContainerProps{{ID: "data", PartitionKey: []string{"/partitionKey"}, Partitions: 3}, {ID: "leases", PartitionKey: []string{"/id"}}, {ID: "parked", PartitionKey: []string{"/partitionKey"}}} {
		if err := emulator.CreateContainer("contacts", c); err != nil {
			t.Fatal(err)
		}
	}
	feed, err := cosmosfeed.NewFeed(emulator.Client(), "contacts", "data")
	if err != nil {
		t.Fatal(err)
	}
	store, err := cosmosfeed.NewLeaseStore(emulator.Client(), "contacts", "leases")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	relay, err := changefeed.New(feed, store, changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil }), &changefeed.Options{
		Processor: "feedbox", Observer: &changefeed.Observer{Balanced: func(b changefeed.Balanced) {
			if b.Owned == 3 {
				stop()
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Run(ctx); err != nil {
		t.Fatal(err)
	}
	defer emulator.Control(cosmosemu.OpReadChangeFeed, cosmosemu.Always(cosmosemu.Fault{Delay: 3 * time.Second}))()
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"leases", "restart", "--all", "--yes"}, &bytes.Buffer{}, &out, &errOut, []string{"FEEDBOX_COSMOS_ENDPOINT=" + emulator.Endpoint(), "FEEDBOX_COSMOS_KEY=" + emulator.Key()})
	if code != exitOK || !strings.Contains(out.String(), "noted: restart of all leases") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errOut)
	}
}

// A request has the name of an operator even without a login, as in a pod.
func TestRequestsNameAnOperator(t *testing.T) {
	p := &program{environ: []string{"USER="}}
	if got := p.operatorName(""); !regexp.MustCompile(`^\S.* on \S+`).MatchString(got) || strings.Contains(got, "unknown") {
		t.Errorf("without a login: %q", got)
	}
	p.environ = []string{"LOGNAME=bob"}
	if got := p.operatorName(""); got != "bob" {
		t.Errorf("with a login: %q, want bob", got)
	}
	if got := p.operatorName("alice"); got != "alice" {
		t.Errorf("with the flag: %q, want alice", got)
	}
}
