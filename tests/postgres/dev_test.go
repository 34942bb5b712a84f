package postgres

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"feedbox/infrastructure/workload"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// feedbox-dev keeps contacts in a database, and its own commands find them there: the
// README's walk of load, dump and verify.
func TestFeedboxDevOnADatabase(t *testing.T) {
	walkOfDev(t, servers.StartPostgres(t).Database(t), "")
}

// The same with their events in RabbitMQ.
func TestFeedboxDevWithRabbitMQ(t *testing.T) {
	walkOfDev(t, servers.StartPostgres(t).Database(t), servers.StartRabbitMQ(t).URL)
}

func walkOfDev(t *testing.T, url, broker string) {
	t.Helper()
	b := testkit.Build(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	_, e := testkit.StartDev(t, b, testkit.AnyPorts("--data-dir", dir, "--record", "--store", url, "--broker", broker, "--page", "127.0.0.1:0")...)
	var history strings.Builder
	var mu sync.Mutex // guards history
	load := &testkit.Workload{Base: e.API, Client: testkit.HTTPClient(t, 4), Contacts: 5, Changes: 60, Writers: 4, Seed: 1, Record: func(o workload.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		line, _ := json.Marshal(o) // texts
		history.Write(append(line, '\n'))
	}}
	must(t, load.Run(t.Context()))
	must(t, os.WriteFile(in("history.jsonl"), []byte(history.String()), 0o600))
	for _, args := range [][]string{
		{"dump", "--data-dir", dir, "--topic", in("topic.jsonl"), "--store", in("store.jsonl")},
		{"verify", "--history", in("history.jsonl"), "--topic", in("topic.jsonl"), "--store", in("store.jsonl")},
	} {
		out, err := exec.CommandContext(t.Context(), b.Dev, args...).CombinedOutput()
		t.Logf("%s: %s", args[0], out)
		must(t, err)
	}
	if broker != "" {
		return
	}
	out, err := exec.CommandContext(t.Context(), b.Dev, "env", "--data-dir", dir).Output()
	if err != nil || !strings.Contains(string(out), "export FEEDBOX_STORE='postgres'") || !strings.Contains(string(out), "export FEEDBOX_POSTGRES_URL='"+url) {
		t.Errorf("env: %s, %v", out, err)
	}
}
