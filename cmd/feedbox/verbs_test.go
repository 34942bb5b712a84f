package main

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/relay/relayport"
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

// withLeases starts an emulator whose container has partitions ranges, each with a lease, and returns it with
// the operator of the leases. No relay runs.
func withLeases(t *testing.T, partitions int) (*cosmosemu.Server, *changefeed.Operator) {
	t.Helper()
	emulator, err := cosmosemu.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = emulator.Close() })
	for _, c := range []cosmosemu.ContainerProps{{ID: "data", PartitionKey: []string{"/partitionKey"}, Partitions: partitions}, {ID: "leases", PartitionKey: []string{"/id"}}, {ID: "parked", PartitionKey: []string{"/partitionKey"}}} {
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
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	relay, err := changefeed.New(feed, store, changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil }), &changefeed.Options{
		Processor: "feedbox", Observer: &changefeed.Observer{Balanced: func(b changefeed.Balanced) {
			if b.Owned == partitions {
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
	return emulator, changefeed.NewOperator(feed, store, &changefeed.OperatorOptions{Processor: "feedbox"})
}

// A restart reads the whole feed before it asks, which may take longer than a quick command may.
func TestRestartReadsAsLongAsItTakes(t *testing.T) {
	defer func(was time.Duration) { answerTimeout = was }(answerTimeout)
	answerTimeout = 6 * time.Second
	emulator, _ := withLeases(t, 3)
	defer emulator.Control(cosmosemu.OpReadChangeFeed, cosmosemu.Always(cosmosemu.Fault{Delay: 3 * time.Second}))()
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"leases", "restart", "--all", "--yes"}, &bytes.Buffer{}, &out, &errOut, []string{"FEEDBOX_COSMOS_ENDPOINT=" + emulator.Endpoint(), "FEEDBOX_COSMOS_KEY=" + emulator.Key()})
	if code != exitOK || !strings.Contains(out.String(), "noted: restart of all leases") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errOut)
	}
}

// A lease that is resumed by name sends nothing while all ranges are paused.
func TestResumeOfALeaseNamesThePauseOfAll(t *testing.T) {
	emulator, operator := withLeases(t, 1)
	leases, err := operator.Leases(t.Context())
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	name := changefeed.LeaseName(leases[0].ID)
	const advice = "resume --all"
	for _, c := range []struct {
		args    []string
		advises bool
	}{{[]string{"pause", "--all", "--yes"}, false}, {[]string{"resume", name}, true}, {[]string{"resume", "--all"}, false}, {[]string{"resume", name}, false}} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), append([]string{"leases"}, c.args...), &bytes.Buffer{}, &out, &errOut, []string{"FEEDBOX_COSMOS_ENDPOINT=" + emulator.Endpoint(), "FEEDBOX_COSMOS_KEY=" + emulator.Key()})
		if code != exitOK || strings.Contains(out.String(), advice) != c.advises {
			t.Errorf("%q: exit code %d, want 0, and the advice %q only while all ranges are paused\n%s%s", c.args, code, advice, &out, &errOut)
		}
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

// The environment of the reader may choose another container by default.
func TestNextPageOfEventsIsOfTheSameContainer(t *testing.T) {
	p := &program{}
	cmd := p.ofContainer(p.eventsCommand())
	if err := cmd.ParseFlags([]string{"--container", "orders", "--limit", "5"}); err != nil {
		t.Fatal(err)
	}
	const want = "events --limit '5' --container orders --after x"
	if got := p.continued(cmd, "x"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// fullDisk accepts the first bytes.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

func TestIncompleteOutputIsAFailure(t *testing.T) {
	for _, left := range []int{0, 1000} {
		var errOut bytes.Buffer
		code := run(t.Context(), []string{"plan", "--changes", "10", "-o", "text"}, nil, &fullDisk{left}, &errOut, nil)
		if code != exitFailure || !strings.Contains(errOut.String(), "no space left") {
			t.Errorf("after %d bytes: exit code %d: %s", left, code, &errOut)
		}
	}
}

// gates answers as a store of parked events, after a pause.
type gates struct {
	relayport.Parked
	pause time.Duration
	gate  relay.Gate // none without a key
}

func (g gates) Gate(context.Context, string) (relay.Gate, error) {
	time.Sleep(g.pause)
	if g.gate.Key == "" {
		return relay.Gate{}, fault.New(fault.NotFound, "", "no gate")
	}
	return g.gate, nil
}

func awaited(t *testing.T, parked gates, before ...relay.Gate) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &program{out: io.Discard, errOut: io.Discard}
		err = p.awaitAll(t.Context(), &operator.Operator{Parked: parked}, before, time.Second, console.FormatTable)
	})
	return err
}

// The wait may end with the first key done, and the others not asked for.
func TestEndOfTheWaitIsNoSuccessOfTheOtherKeys(t *testing.T) {
	slow := gates{pause: time.Second}
	if err := awaited(t, slow, relay.Gate{Key: "a"}, relay.Gate{Key: "b"}); err == nil || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("two keys: %v", err)
	}
	if err := awaited(t, slow, relay.Gate{Key: "a"}); err != nil {
		t.Errorf("one key: %v", err)
	}
}

// The request was carried out, whatever happened to the key after it.
func TestKeyThatIsParkedAgainIsNotWaitedFor(t *testing.T) {
	closed := time.Now()
	before := relay.Gate{Key: "a", Closing: relay.Closing{At: closed}, Intent: &relay.Intent{Verb: relay.VerbRetry}, Attempts: 2}
	again := relay.Gate{Key: "a", Closing: relay.Closing{At: closed.Add(time.Minute), Error: "e9 has 2 MB"}}
	if err := awaited(t, gates{gate: again}, before); err == nil || !strings.Contains(err.Error(), "parked again: e9 has 2 MB") {
		t.Errorf("parked again: %v", err)
	}
	if err := awaited(t, gates{gate: before}, before); err == nil || !strings.Contains(err.Error(), "stays pending") {
		t.Errorf("not sent yet: %v", err)
	}
}

// Nothing is parked again in a range that is not rewound.
func TestReplayCountsRefusedEventsOfRewoundRangesOnly(t *testing.T) {
	v, rewind := sumReplay([]operator.Resend{{Lease: "-7F", Refused: 2}, {Lease: "7F-FF", Events: 1, Refused: 1}})
	if v.Refused != 1 || !slices.Equal(rewind, []string{"7F-FF"}) || v.Ranges[0].Refused != 2 {
		t.Errorf("%d refused, %q rewound: %+v", v.Refused, rewind, v)
	}
}

// half stores the intent of one of its two gates.
type half struct{ relayport.Parked }

func (half) Gates(context.Context) ([]relay.Gate, error) {
	return []relay.Gate{{Key: "a"}, {Key: "b"}}, nil
}

func (half) SetIntent(_ context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	if key == "b" {
		return relay.Gate{}, errors.New("no reply")
	}
	return relay.Gate{Key: key, Intent: &intent}, nil
}

func TestRetriesNotedBeforeAFailureAreListed(t *testing.T) {
	var out bytes.Buffer
	p := &program{out: &out, errOut: io.Discard}
	err := p.requestAll(t.Context(), &operator.Operator{Parked: half{}}, "", relay.Intent{Verb: relay.VerbRetry}, true, 0, console.FormatJSON)
	if err == nil || !strings.Contains(err.Error(), "after 1 of 2 keys") || !strings.Contains(out.String(), `"key": "a"`) {
		t.Errorf("%v: %s", err, &out)
	}
}

// What is printed is corrected and sent again.
func TestPrintedBodiesAreNotAltered(t *testing.T) {
	var out bytes.Buffer
	p := &program{out: &out}
	for body, want := range map[string]string{"plain\ttext": "plain\ttext\n", "{\"a\":\"\u202e\"}": "{\n  \"a\": \"\\u202e\"\n}\n"} {
		if err := p.printBody([]byte(body)); err != nil || out.String() != want {
			t.Errorf("%q: %v, %q", body, err, &out)
		}
		out.Reset()
	}
	for _, body := range []string{"\n\x04name\x12", "a\r\nb"} {
		if err := p.printBody([]byte(body)); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, %q", body, err, &out)
		}
		out.Reset()
	}
}

// Without leases, or where none covers the keys, nothing measures a lag.
func TestLagThatNothingMeasuresIsNotZero(t *testing.T) {
	range1 := rangeView{Lease: "a", Known: true, Behind: new(int64(3)), Oldest: new(1.0)}
	for _, c := range []struct {
		v    lagView
		want []string
	}{
		{lagView{}, []string{"  lag not known\n", "no relay has started"}},
		{lagView{Ranges: []rangeView{range1}, Behind: 3, Oldest: 1}, []string{"  3 behind, oldest 1s\n"}},
		{lagView{Ranges: []rangeView{range1}, Behind: 3, Oldest: 1, Uncovered: []string{"1F-2F"}}, []string{
			"  at least 3 behind, oldest 1s, not known in 1F-2F\n", "no lease covers 1F-2F: their events are not sent\n", "next: feedbox leases ls --container orders\n",
		}},
		{lagView{Ranges: []rangeView{range1, {Lease: "b"}}, Behind: 3, Oldest: 1, Unknown: 1}, []string{"  at least 3 behind, oldest 1s, not known in 1 ranges\n"}},
		{lagView{Ranges: []rangeView{{Lease: "b"}}, Unknown: 1, Uncovered: []string{"1F-2F"}}, []string{"  lag not known\n", "no lease covers 1F-2F"}},
	} {
		var out strings.Builder
		p := &program{out: &out, errOut: io.Discard, container: "orders"}
		if err := p.showTick(c.v, nil, &config.Relay{Processor: "feedbox"}, lagFlags{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing in:\n%s", want, out.String())
			}
		}
	}
}

// An unset variable of a script must not choose another target: the events of the relay instead of those of a
// consumer, or all instead of those of a key.
func TestBlankNamesAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"parked", "retry", "--all", "--yes", "--consumer", ""},
		{"parked", "skip", "k", "--event", "e", "--note", "n", "--consumer="},
		{"deadletters", "discard", "--all", "--note", "n", "--yes", "--consumer", " "},
		{"leases", "pause", "--all", "--yes", "--container", ""},
		{"events", "--key", ""},
		{"events", "--id", ""},
		{"events", "--action", ""},
		{"events", "--state", ""},
		{"deadletters", "ls", "--reason", ""},
	} {
		var errOut strings.Builder
		code := run(t.Context(), args, nil, io.Discard, &errOut, []string{
			"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com", "FEEDBOX_COSMOS_KEY=a2V5", "FEEDBOX_COSMOS_PREFERRED_REGIONS=,",
		}) // the last one is refused, so that no command connects
		if code != exitUsage || !strings.Contains(errOut.String(), "is blank") {
			t.Errorf("%q: exit code %d: %s", args, code, errOut.String())
		}
	}
}
