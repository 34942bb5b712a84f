//go:build faults

package crash

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// feedbox push and its receiver are killed with -9 at random under load, and the receiver fails 2 % of
// the requests. Every event has its effect at the receiver once and in order.
func TestPushAndReceiverKilledAtRandom(t *testing.T) {
	const full = 60
	kills := testkit.Count(t, full)
	seed := testkit.Seed(t, 41)
	rnd := rand.New(rand.NewPCG(seed, 0))
	b := testkit.Build(t)
	_, e := testkit.StartDev(t, b, testkit.EmulatorPorts("--ephemeral")...)
	_, base := testkit.StartAPI(t, b, e)
	testkit.StartRelay(t, b, e, "relay-1")

	effects := filepath.Join(t.TempDir(), "effects")
	address := servers.Address(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	receiver := func() *testkit.Process {
		return testkit.Start(t, "receiver", self, []string{"FEEDBOX_TEST_RECEIVER=" + address, "FEEDBOX_TEST_EFFECTS=" + effects, "FEEDBOX_TEST_RECEIVER_SEED=" + strconv.FormatUint(rnd.Uint64(), 10)}, "-test.run=^TestReceiverProcess$")
	}
	pushes := 0
	push := func() *testkit.Process {
		pushes++
		return testkit.Start(t, fmt.Sprint("push-", pushes), b.Feedbox, []string{
			"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + e.ServiceBusConnectionString, "FEEDBOX_SERVICEBUS_TOPIC=" + e.Topic, "FEEDBOX_LOG_FORMAT=json",
		}, "push", "--from", e.Subscription, "--to", "http://"+address+"/events")
	}
	received, senders := receiver(), []*testkit.Process{push(), push()}

	load := &testkit.Workload{Base: base, Client: testkit.HTTPClient(t, 8), Contacts: 60, Changes: 50_000_000, Writers: 8, Seed: int64(seed), Rate: 150}
	stop := testkit.Background(t, load)
	testkit.Eventually(t, patience, "the contacts", func() bool { return load.Done() >= load.Contacts })
	for n := range kills {
		time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond) // the fault is at any time
		if n%3 == 0 {
			received.Kill()
			received = receiver()
			continue
		}
		victim := rnd.IntN(len(senders))
		senders[victim].Kill()
		senders[victim] = push()
	}
	stop()

	var history testkit.History
	history.Add(load)
	run := history.Run()
	run.Aggregates, run.Events = testkit.ReadStore(t.Context(), t, e.ContainerClient(t, e.Container))
	testkit.Eventually(t, 2*patience, "the effect of every event", func() bool { return len(readEffects(t, effects)) >= len(run.Events) })
	run.Messages = readEffects(t, effects)
	var r testkit.Result
	testkit.Judge(t, &run, &r)
	t.Logf("seed %d: %d kills, %d events", seed, kills, len(run.Events))
}

func readEffects(t *testing.T, path string) (all []verify.Message) {
	t.Helper()
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var m verify.Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			break // a line that is being written
		}
		all = append(all, m)
	}
	return all
}

// TestReceiverProcess is the receiver, in a process of its own. Its effect is a line of a file, which a
// kill cannot cut because it is written at once. It ignores what it has written before.
func TestReceiverProcess(t *testing.T) {
	address := os.Getenv("FEEDBOX_TEST_RECEIVER")
	if address == "" {
		return // not started by the test
	}
	path := os.Getenv("FEEDBOX_TEST_EFFECTS")
	seed, err := strconv.ParseUint(os.Getenv("FEEDBOX_TEST_RECEIVER_SEED"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	last := map[string]int64{}
	for _, m := range readEffects(t, path) {
		last[m.Session] = m.Sequence
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var event struct{ ID, Type, Partitionkey, Keysequence, Aggregateversion string }
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil || rnd.IntN(50) == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		m := verify.Message{ID: event.ID, Session: event.Partitionkey, Subject: event.Type}
		m.Sequence, _ = strconv.ParseInt(event.Keysequence, 10, 64)
		m.Version, _ = strconv.ParseInt(event.Aggregateversion, 10, 64)
		if m.Sequence <= last[m.Session] {
			return
		}
		line, _ := json.Marshal(m)
		if _, err := file.Write(slices.Concat(line, []byte("\n"))); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		last[m.Session] = m.Sequence
		if rnd.IntN(50) == 0 { // the effect is stored, and the answer lost
			panic(http.ErrAbortHandler)
		}
	})}
	t.Fatal(server.ListenAndServe())
}
