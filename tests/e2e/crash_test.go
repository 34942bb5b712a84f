package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// feedbox-dev is killed ten times under load and restarted on its data. No acknowledged change is lost,
// and none of its events is missing.
func TestDevKilledUnderLoad(t *testing.T) {
	t.Parallel()
	kills := testenv.Sample(t, 3, 10)
	seed := testkit.Seed(t, 1)
	rnd := rand.New(rand.NewPCG(seed, 0))
	binaries, dir := testkit.Build(t), t.TempDir()
	acked, unknown, lost := map[string]int{}, map[string]int{}, 0
	var printed strings.Builder
	start := func() (*testkit.Process, testkit.Endpoints) {
		return testkit.StartDev(t, binaries, testkit.AnyPorts("--data-dir", dir)...)
	}
	for round := range kills {
		dev, e := start()
		load := &testkit.Workload{
			Base: e.API, Client: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second},
			Contacts: 20, Changes: 100_000, Writers: 8, Seed: int64(seed) + int64(round),
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- load.Run(ctx) }()
		testkit.Eventually(t, time.Minute, "the first changes", func() bool { _, _, n := load.History(); return n > 30 })
		time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
		dev.Kill()
		cancel()
		if err := <-done; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		a, u, _ := load.History()
		lost += load.LostCreates()
		for id, n := range a {
			acked[id] += n
		}
		for id, n := range u {
			unknown[id] += n
		}
		printed.WriteString(dev.Output())
	}

	dev, e := start()
	run := verify.Run{Acked: acked, Unknown: unknown, LostCreates: lost}
	run.Aggregates, run.Events = testkit.ReadStore(t.Context(), t, e.ContainerClient(t, e.Container))
	testkit.Eventually(t, time.Minute, "every stored event", func() bool {
		run.Messages = firstArrivals(t, printed.String()+dev.Output())
		return len(run.Messages) >= len(run.Events)
	})
	t.Log(run.Summary())
	for _, v := range run.Verify() {
		t.Error(v)
	}
}

// firstArrivals parses the output of the demo subscriber. It may print an event twice, if it was killed
// before it settled the message.
func firstArrivals(t *testing.T, output string) []verify.Message {
	t.Helper()
	var messages []verify.Message
	seen := map[string]bool{}
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "event ") || i+1 >= len(lines) {
			continue
		}
		var body struct {
			ID, ContactID, Action      string
			AggregateVersion, Sequence int64
		}
		if json.Unmarshal([]byte(lines[i+1]), &body) != nil || seen[body.ID] {
			continue // truncated by the kill, or a repeat
		}
		seen[body.ID] = true
		messages = append(messages, verify.Message{ID: body.ID, Session: body.ContactID, Subject: body.Action, Version: body.AggregateVersion, Sequence: body.Sequence})
	}
	return messages
}
