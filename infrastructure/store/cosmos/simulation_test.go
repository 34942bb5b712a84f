package cosmos_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
	contactkind "feedbox/infrastructure/store/document/contacts"
	"feedbox/infrastructure/store/unitofwork"
	"feedbox/tests/spec/steps"
	"feedbox/tests/testenv"
)

// TestSimulation lets several clients change one contact, while requests and answers are lost, late or
// throttled. Each change that a client was told to be stored is there once. The steps are recorded for
// the comparison with Commit.tla (tests/spec).
func TestSimulation(t *testing.T) {
	first := testenv.Seed(t, "COMMIT_SEED", 1)
	seeds := testenv.Count(t, "COMMIT_SEEDS", 5)
	for seed := first; seed < first+uint64(seeds); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { simulateCommits(t, seed) })
		})
	}
}

// chaos decides the fate of requests.
type chaos struct {
	mu   sync.Mutex // guards rnd
	rnd  *rand.Rand
	late sync.WaitGroup // requests under way
}

// Fate implements steps.CommitFaults.
func (c *chaos) Fate(_ *http.Request, batch bool) steps.Fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := time.Duration(c.rnd.Int64N(int64(20 * time.Millisecond)))
	arrive := func() { time.Sleep(pause) }
	switch n := c.rnd.IntN(100); {
	case !batch && n < 10:
		return steps.Fate{Lose: io.ErrUnexpectedEOF}
	case !batch || n < 50:
		return steps.Fate{Arrive: arrive}
	case n < 60:
		return steps.Fate{Lose: io.ErrUnexpectedEOF} // the request is lost
	case n < 80:
		return steps.Fate{Lose: io.ErrUnexpectedEOF, Arrive: arrive} // the answer is lost
	case n < 90:
		pause *= time.Duration(1 + c.rnd.IntN(20))
		return steps.Fate{Lose: io.ErrUnexpectedEOF, Arrive: arrive, Late: true}
	default:
		return steps.Fate{Throttle: true}
	}
}

// Go implements steps.CommitFaults.
func (c *chaos) Go(late func()) { c.late.Go(late) }

func simulateCommits(t *testing.T, seed uint64) {
	w := newWorld(t, worldOptions{emulator: &cosmosemu.Options{Network: pipenet.New()}})
	id := w.create().Contact.ID
	log := steps.NewCommits()
	const clients, commits = 3, 20
	var (
		running      sync.WaitGroup
		mu           sync.Mutex // guards the counts
		made, unsure int
	)
	faults := &chaos{rnd: rand.New(rand.NewPCG(seed, 1))}
	for n := range clients {
		name := fmt.Sprint("c", n+1)
		client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: w.emulator.Endpoint(), Key: w.emulator.Key(), Options: azcore.ClientOptions{
			Transport: log.Transport(name, w.emulator.HTTPClient(), faults),
		}})
		must(t, err)
		t.Cleanup(client.Close)
		container, err := client.NewContainer("contacts", "data")
		must(t, err)
		c := &world{t: t, app: mediator.New()}
		c.work, err = cosmos.NewUnitsOfWork(container, contactkind.Kind(), c.app, &cosmos.Options{Backoff: 5 * time.Millisecond})
		must(t, err)
		contacts.SubscribeEvents(c.app)
		must(t, contacts.RegisterCommands(c.app, contacts.CommandPorts{Work: c.work, IDs: uuid.New, Now: time.Now}))
		rnd := rand.New(rand.NewPCG(seed, uint64(10+n)))
		running.Go(func() {
			for i := range commits {
				time.Sleep(time.Duration(rnd.Int64N(int64(50 * time.Millisecond))))
				_, err := c.rename(t.Context(), id, fmt.Sprintf("%s-%d", name, i))
				kind := "refused"
				mu.Lock()
				if fail, ok := errors.AsType[*fault.Error](err); err == nil {
					kind = "stored"
					made++
				} else if ok && fail.Code == unitofwork.CodeOutcomeUnknown {
					kind = "unknown"
					unsure++
				}
				mu.Unlock()
				log.Do(func() steps.CommitStep { return steps.CommitStep{Client: name, Do: "result", Kind: kind} })
			}
		})
	}
	running.Wait()
	faults.late.Wait()
	if stored, events := w.documents(id); len(events)-1 < made || len(events)-1 > made+unsure || int(stored.Data.Version) != len(events) {
		t.Errorf("%d changes were stored and %d are unknown; the contact has version %d and %d events", made, unsure, stored.Data.Version, len(events))
	}
	if err := log.Write(fmt.Sprint("commit-", seed)); err != nil {
		t.Error(err)
	}
}
