package faults

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F16, at the API: a request that is one byte too large is refused before it is stored.
func TestOversizeRequests(t *testing.T) {
	runScenario(t, testkit.Result{Fault: "F16", Name: "requests at the limits of a body and of its fields", Seed: 16, Of: 6, Note: "refused with 413 and 422"},
		world.Topology{APIs: 1, Relays: 1, Consumers: 1}, func(s *scenario) {
			client := s.NewClient()
			defer client.Close()
			const body = 64 << 10
			s.Sleep(5 * time.Second)
			// create sends a creation with a description of n bytes.
			create := func(n int) int {
				return client.Do(s.Context(), "api-0", http.MethodPost, "/api/contacts", map[string]any{
					"firstName": "Ada", "lastName": "Doe", "companyName": "Contoso", "email": "ada@contoso.com", "description": strings.Repeat("x", n),
				}).Status
			}
			around := len(`{"companyName":"Contoso","description":"","email":"ada@contoso.com","firstName":"Ada","lastName":"Doe"}`)
			for n, want := range map[int]int{
				body - 1: http.StatusUnprocessableEntity, body: http.StatusUnprocessableEntity, body + 1: http.StatusRequestEntityTooLarge, 4 * body: http.StatusRequestEntityTooLarge,
				around + 100: http.StatusCreated,
			} {
				s.struck.Add(1)
				if got := create(n - around); got != want {
					s.Errorf("a body of %d bytes was answered with %d, want %d", n, got, want)
				}
			}
			run := s.Settle()
			run.Acked = nil
			s.verify(run)
			if len(run.Aggregates) != 1 {
				s.Errorf("%d contacts are stored, want one", len(run.Aggregates))
			}
		})
}

// F16, without the API: events that another client has stored. Batches that would be too large are
// split. Events that cannot be sent at all are parked after few attempts.
func TestOversizeEvents(t *testing.T) { testOversizeEvents(t, "Standard", false, 256<<10, 161) }

// F16, the same on a namespace of the Premium tier, where messages and batches may be four times as
// large.
func TestOversizeEventsPremium(t *testing.T) { testOversizeEvents(t, "Premium", true, 1<<20, 162) }

// testOversizeEvents stores events around the limit of a message and a batch, in bytes.
func testOversizeEvents(t *testing.T, tier string, premium bool, message int, seed uint64) {
	runScenario(t, testkit.Result{
		Fault: "F16", Name: fmt.Sprintf("events, batches, ids and properties at the broker's limits (%s: %d KB) and beyond", tier, message>>10), Seed: seed, Of: 17,
		Note: "divided or parked; no attempt is made again",
	}, world.Topology{APIs: -1, Relays: 1, Consumers: 1, Partitions: 1, Premium: premium}, func(s *scenario) {
		data := s.containers(world.Data)[0]
		var sends, together atomic.Int64
		s.FaultBus(func(c *busemu.Call) *busemu.Fault {
			if c.Operation == busemu.OpSend {
				sends.Add(1)
				if c.Messages > 1 {
					together.Add(1)
				}
			}
			return nil
		})
		s.Sleep(5 * time.Second)
		poison := map[string]bool{}
		// put stores a contact with events, of which the first bad ones cannot be sent.
		put := func(bad int, key string, documents ...document) {
			s.Helper()
			s.struck.Add(1)
			all := []document{contact(key, len(documents), len(documents))}
			for i, d := range documents {
				id, _, _ := strings.Cut(strings.TrimPrefix(d.raw, `{"id":"`), `"`)
				if i < bad {
					poison[id] = true
				}
				all = append(all, d)
			}
			s.commit(data, key, all...)
		}
		sized := func(key string, n, size int) document {
			return custom(eventID(key, n), key, "ContactNameUpdatedEvent", n, size)
		}
		put(0, "almost", sized("almost", 1, message-2048))
		put(1, "large", sized("large", 1, message+1))
		put(2, "larger", sized("larger", 1, max(1<<20+1, message*3/2)), sized("larger", 2, 10))
		for _, rest := range []int{-1025, -1024, -1023, -1, 0, 1} { // two messages around one batch
			key := fmt.Sprint("two", rest)
			put(0, key, sized(key, 1, message/2), sized(key, 2, message/2+rest))
		}
		put(0, "many", sized("many", 1, message/3), sized("many", 2, message/3), sized("many", 3, message/3), sized("many", 4, message/3), sized("many", 5, 10))
		for _, n := range []int{127, 128, 129} {
			bad := 0
			if n > 128 {
				bad = 1
			}
			id := strings.Repeat("i", n)
			put(2*bad, fmt.Sprint("id", n), custom(id, fmt.Sprint("id", n), "ContactNameUpdatedEvent", 1, 10), sized(fmt.Sprint("id", n), 2, 10))
			key := strings.Repeat("k", n)
			put(bad, key, custom(fmt.Sprint("key", n), key, "ContactNameUpdatedEvent", 1, 10))
		}
		put(0, "property", custom("property.1", "property", strings.Repeat("A", 32<<10-1), 1, 10))

		s.Sleep(time.Minute)
		settled := sends.Load()
		s.Sleep(10 * time.Minute)
		if again := sends.Load() - settled; again > 0 {
			s.Errorf("%d sends in the ten minutes after all had settled", again)
		}
		run := s.Settle()
		run.Acked, run.Poison = nil, poison
		s.verify(run)
		s.Logf("%d sends, %d parked", settled, len(run.Parked))
		if together.Load() == 0 {
			s.Error("no batch had more than one message, so that splitting was not tested")
		}
		if settled == 0 || settled > 80 {
			s.Errorf("%d sends for %d events", settled, len(run.Events))
		}
	})
}

// custom returns the document of an event with data padded by size bytes.
func custom(id, key, action string, n, size int) document {
	return document{raw: fmt.Sprintf(
		`{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"action":%q,"sequence":%d,"aggregateVersion":%d,"pad":"%s"},"ttl":-1}`,
		id, key, action, n, n, strings.Repeat("x", size))}
}
