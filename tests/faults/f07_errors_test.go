package faults

import (
	"fmt"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F7: each call to the store fails in one of six ways, 5 % each: 449, 408, 500, 503, a reset
// connection, a truncated body. Half of the calls with unknown outcome were executed. Nothing is
// lost and nothing happens twice.
func TestFailingStore(t *testing.T) {
	const full = 3600 // seconds of storm
	runScenario(t, testkit.Result{
		Fault: "F7", Name: "Cosmos DB answers with 449, 408, 500, 503, resets or breaks off, 5 % each", Seed: 7, Of: 30_000,
	}, world.Topology{APIs: 1, Consumers: 1}, func(s *scenario) {
		var unanswered tally
		s.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault {
			faults := []cosmosemu.Fault{
				cosmosemu.RetryWith(), cosmosemu.TimedOut(), cosmosemu.Failed(), cosmosemu.Unavailable(),
				{Loss: cosmosemu.Reset},
				{Loss: cosmosemu.Truncate},
			}
			n := s.pick(100) / 5
			if n >= len(faults) {
				return nil
			}
			s.struck.Add(1)
			f := faults[n]
			f.Execute = n > 0 && s.chance(0.5) // a 449 was never executed
			if f.Execute && c.Container == world.Data && c.Operation == cosmosemu.OpBatch {
				unanswered.add(partitionKey(c))
			}
			return &f
		})
		load := s.StartLoad(world.LoadOptions{Writers: 3, Pace: 500 * time.Millisecond})
		s.Sleep(time.Duration(testkit.Count(s, full)) * time.Second)
		run := s.Settle()
		// A change that was executed without a reply, and retried after the contact was
		// deleted, is answered with 404. The load counts it as not made. There are at most
		// as many of these as changes of that contact with a lost reply.
		gone, excused := load.Gone(), 0
		for _, c := range run.Aggregates {
			unexplained := int(c.Version) - run.Acked[c.ID] - run.Unknown[c.ID]
			n := max(0, min(unexplained, gone[c.ID], unanswered.of(c.ID)))
			run.Unknown[c.ID] += n
			excused += n
		}
		s.Logf("%d changes were executed, not answered, and reported as not found", excused)
		s.verify(run)
		s.sessionsHandledOnce(run)
		s.Log(load.Requests())
	})
}

// tally counts by name. It is safe for concurrent use.
type tally struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[name]++
}

func (t *tally) of(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[name]
}

// F7: the reply to a create is lost after it was executed. The same request detects that and answers
// normally. One contact is stored, with one event per change.
func TestCreationInDoubt(t *testing.T) {
	const full = 1000
	runScenario(t, testkit.Result{
		Fault: "F7", Name: "reply to a creation lost after it was carried out", Seed: 71, Of: full,
	}, world.Topology{APIs: 1, Relays: 1, Consumers: 1}, func(s *scenario) {
		var lose atomic.Bool
		s.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault {
			if c.Operation != cosmosemu.OpBatch || c.Container != world.Data || !lose.CompareAndSwap(true, false) {
				return nil
			}
			s.struck.Add(1)
			f := cosmosemu.LostReply([]cosmosemu.Loss{cosmosemu.Reset, cosmosemu.Truncate}[s.pick(2)])
			return &f
		})
		client := s.NewClient()
		defer client.Close()
		s.Sleep(5 * time.Second)
		acked := map[string]int{}
		for i := range testkit.Count(s, full) {
			lose.Store(true)
			var headers []string
			if i%2 == 0 {
				headers = []string{"Idempotency-Key", fmt.Sprint("key-", i)}
			}
			r := client.Do(s.Context(), "api-0", http.MethodPost, "/api/contacts", map[string]any{
				"firstName": "Ada", "lastName": "Doe", "companyName": "Contoso", "email": fmt.Sprintf("a%d@contoso.com", i),
			}, headers...)
			if r.Status != http.StatusCreated {
				s.Fatalf("a creation whose reply was lost once was answered with %d: %s", r.Status, r.Body)
			}
			acked[path.Base(r.Header.Get("Location"))]++
		}
		run := s.Settle()
		if len(run.Aggregates) != len(acked) {
			s.Errorf("%d contacts are stored after %d creations", len(run.Aggregates), len(acked))
		}
		run.Acked = acked
		s.verify(run)
	})
}
