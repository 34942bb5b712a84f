package pairs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/lab/workload"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// feedbox-dev stores contacts in PostgreSQL, and its commands load, dump and verify work
// with it as in its README.
func TestFeedboxDevOnADatabase(t *testing.T) {
	t.Parallel()
	url := openPostgres(t).url
	walkOfDev(t, nil, url, "", "export FEEDBOX_STORE='postgres'", "export FEEDBOX_POSTGRES_URL='"+url)
}

// The same in Firestore.
func TestFeedboxDevOnFirestore(t *testing.T) {
	if !everyPair && !testenv.Full(t) {
		t.Skip("Google's emulator needs ten seconds of processor time: runs with FEEDBOX_TEST_FULL=yes")
	}
	t.Parallel()
	walkOfDev(t, []string{"FIRESTORE_EMULATOR_HOST=" + firestoreServer.get(t)}, "firestore://dev", "", "export FEEDBOX_STORE='firestore'", "export FEEDBOX_FIRESTORE_PROJECT='dev'")
}

// The same with their events in RabbitMQ.
func TestFeedboxDevWithRabbitMQ(t *testing.T) {
	t.Parallel()
	walkOfDev(t, nil, openPostgres(t).url, rabbitServer.get(t).URL)
}

// The same with their events in SQS, and in a topic of SNS. A queue has no second reader that could
// record them, so the test reads the output of the demo consumer.
func TestFeedboxDevWithSQS(t *testing.T) {
	t.Parallel()
	address := sqsServer.get(t)
	for _, broker := range []string{address + "/123456789012/dev.fifo", "arn:aws:sns:eu-west-1:123456789012:dev-topic.fifo"} {
		environ := append([]string{"AWS_ENDPOINT_URL=" + address}, inAWS...)
		dev, e := testkit.StartDevWith(t, testkit.Build(t), environ, testkit.AnyPorts("--ephemeral", "--broker", broker)...)
		load := &testkit.Workload{Base: e.API, Client: testkit.HTTPClient(t, 4), Contacts: 5, Changes: 60, Writers: 4, Seed: 1}
		must(t, load.Run(t.Context()))
		testkit.Eventually(t, time.Minute, "sixty events", func() bool { return strings.Count(dev.Output(), "\nevent Contact") >= 60 })
	}
}

// walkOfDev runs the walk with the variables in environ and expects the given lines in the
// output of feedbox-dev env.
func walkOfDev(t *testing.T, environ []string, url, broker string, lines ...string) {
	t.Helper()
	b := testkit.Build(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	dev, e := testkit.StartDevWith(t, b, environ, testkit.AnyPorts("--data-dir", dir, "--record", "--store", url, "--broker", broker, "--page", "127.0.0.1:0")...)
	var history strings.Builder
	var mu sync.Mutex // guards history
	load := &testkit.Workload{Base: e.API, Client: testkit.HTTPClient(t, 4), Contacts: 5, Changes: 60, Writers: 4, Seed: 1, Record: func(o workload.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		line, _ := json.Marshal(o) // texts
		history.Write(append(line, '\n'))
	}}
	must(t, load.Run(t.Context()))
	testkit.Eventually(t, time.Minute, "sixty events", func() bool { return strings.Count(dev.Output(), "\nevent Contact") >= 60 })
	must(t, os.WriteFile(in("history.jsonl"), []byte(history.String()), 0o600))
	for _, args := range [][]string{
		{"dump", "--data-dir", dir, "--topic", in("topic.jsonl"), "--store", in("store.jsonl"), "--idle", "5s"},
		{"verify", "--history", in("history.jsonl"), "--topic", in("topic.jsonl"), "--store", in("store.jsonl")},
	} {
		cmd := exec.CommandContext(t.Context(), b.Dev, args...)
		cmd.Env = testkit.Environ(environ...)
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %s", args[0], out)
		must(t, err)
	}
	out, err := exec.CommandContext(t.Context(), b.Dev, "env", "--data-dir", dir).Output()
	must(t, err)
	for _, line := range lines {
		if !strings.Contains(string(out), line) {
			t.Errorf("env does not say %s: %s", line, out)
		}
	}
}
