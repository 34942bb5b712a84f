//go:build faults

package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/tests/testkit"
)

const eachKey = 40 // events

// Consumers of each broker are killed with -9 at random while they handle events of which 1 in 100 is refused
// until an operator has removed the cause. The operator retries and skips at random. A journal of each key,
// which is stored with the mark of the inbox, has each event once and in order, unless it was skipped.
// FEEDBOX_PARKED_KEYS sets the number of keys, of which SQS has a tenth: 25,000 are a million events,
// with 250 kills.
func TestConsumersKilledAtRandom(t *testing.T) {
	for _, broker := range []string{"servicebus", "rabbitmq", "sqs"} {
		t.Run(broker, func(t *testing.T) { killConsumers(t, broker) })
	}
}

func killConsumers(t *testing.T, broker string) {
	const full = 40
	kills, seed := testkit.Count(t, full), testkit.Seed(t, 17)
	keys := 25 * kills
	if n, err := strconv.Atoi(os.Getenv("FEEDBOX_PARKED_KEYS")); err == nil {
		keys, kills = n, max(kills, n/100)
	}
	if broker == "sqs" {
		keys = max(1, keys/10) // moto takes few requests a second
	}
	rnd := rand.New(rand.NewPCG(seed, 2))
	plan := &consumerPlan{Broker: broker, Seed: seed, Cured: t.TempDir()}
	_, plan.Endpoints = testkit.StartDev(t, testkit.Build(t), testkit.EmulatorPorts("--ephemeral")...)
	publisher := plan.startBroker(t)
	if broker == "sqs" {
		publisher = &pacedPublisher{Publisher: publisher, client: plan.sqs(), queue: plan.Queue}
	}
	o := &consumerOperator{t: t, plan: plan, store: plan.parked(t), rnd: rnd, keys: keys}
	published := make(chan error, 1)
	go func() { published <- publishTo(t.Context(), publisher, keys) }()

	consumers := []*testkit.Process{plan.start(t, 0), plan.start(t, 1)}
	limit := time.Now().Add(3*time.Minute + time.Duration(kills)*3*time.Second + time.Duration(keys)*200*time.Millisecond)
	for killed := 0; killed < kills || !o.complete(); {
		if time.Now().After(limit) {
			t.Fatalf("not complete after %d kills, %d keys are parked: %s", killed, len(o.closed), consumers[0].Output())
		}
		time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond) // the fault is at any time
		o.operate()
		if killed < kills {
			victim := rnd.IntN(len(consumers))
			consumers[victim].Kill()
			killed++
			consumers[victim] = plan.start(t, 1+killed)
		}
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	r := testkit.Result{Fault: "F17", Name: "kill -9 of consumers of " + broker + " among refused events", Seed: seed, Injections: int64(kills), Of: full}
	run, skipped := o.run()
	testkit.Judge(t, &run, &r)
	r.Note = fmt.Sprintf("%d events, %d refused at first, %d skipped", len(run.Events), plan.refused(keys), skipped)
	t.Log(r.Note)
	testkit.Record(t, r)
}

func eventID(key string, sequence int64) string { return fmt.Sprintf("%s.%d", key, sequence) }

// publishTo sends the events of each key in four parts.
func publishTo(ctx context.Context, publisher relay.Publisher, keys int) error {
	const together = 100 // keys
	for part := range int64(4) {
		for first := 0; first < keys; first += together {
			var groups []relay.Group
			for key := first; key < min(first+together, keys); key++ {
				g := relay.Group{Key: fmt.Sprint("key-", key)}
				for n := part*eachKey/4 + 1; n <= (part+1)*eachKey/4; n++ {
					g.Messages = append(g.Messages, relay.Message{ID: eventID(g.Key, n), Key: g.Key, Action: "Changed", Body: []byte(`{}`), Sequence: n, AggregateVersion: n})
				}
				groups = append(groups, g)
			}
			for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // like the relay: a connection can end
				err := publisher.Publish(ctx, groups)
				if err == nil {
					break
				}
				failed, ok := errors.AsType[*relay.PublishError](err)
				if !ok || time.Now().After(limit) || slices.ContainsFunc(failed.Keys, func(k relay.KeyError) bool { return relay.ClassOf(k.Err) != relay.Outage }) {
					return err
				}
			}
		}
	}
	return nil
}

// consumerOperator removes causes, and retries and skips parked events at random.
type consumerOperator struct {
	t      *testing.T
	plan   *consumerPlan
	store  *parked.Store
	rnd    *rand.Rand
	keys   int
	closed []relay.Gate // when operate looked
	known  int          // keys whose journals are complete, from the first on
}

func (o *consumerOperator) operate() {
	ctx := o.t.Context()
	var err error
	if o.closed, err = o.store.Gates(ctx); err != nil { // the list of closed keys may have unused entries after a kill
		o.t.Fatal(err)
	}
	for i := range o.closed {
		g := &o.closed[i]
		key := g.Key
		first, err := o.store.First(ctx, key, 1, 1<<20)
		if err != nil || g.Intent != nil || len(first) == 0 {
			continue
		}
		intent := relay.Intent{Verb: relay.VerbRetry, By: "ann", At: time.Now().UTC().Round(time.Millisecond)}
		switch o.rnd.IntN(8) {
		case 0:
			intent.Verb, intent.Event = relay.VerbSkip, first[0].ID
		case 1, 2: // the cause is still there
		default:
			if err := os.WriteFile(filepath.Join(o.plan.Cured, first[0].ID), nil, 0o600); err != nil {
				o.t.Fatal(err)
			}
		}
		_, _ = o.store.SetIntent(ctx, key, intent) // the gate may be open by now
	}
}

// complete reports whether each event is in its journal or skipped, and no key is parked.
func (o *consumerOperator) complete() bool {
	data := o.plan.Endpoints.ContainerClient(o.t, o.plan.Endpoints.Container)
	for ; o.known < o.keys; o.known++ {
		key := fmt.Sprint("key-", o.known)
		d, _, err := readJournal(o.t.Context(), data, key)
		if err != nil {
			o.t.Fatal(err)
		}
		if len(d.Events) < eachKey && len(d.Events)+len(o.skipped(key)) < eachKey {
			return false
		}
	}
	return len(o.closed) == 0
}

func (o *consumerOperator) skipped(key string) (ids []string) {
	records, err := o.store.Skipped(o.t.Context(), key)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, s := range records {
		ids = append(ids, s.Event.ID)
	}
	return ids
}

// run returns the content of the journals as messages. Skipped events are at their places.
func (o *consumerOperator) run() (run verify.Run, skips int) {
	data := o.plan.Endpoints.ContainerClient(o.t, o.plan.Endpoints.Container)
	for n := range o.keys {
		key := fmt.Sprint("key-", n)
		d, _, err := readJournal(o.t.Context(), data, key)
		if err != nil {
			o.t.Fatal(err)
		}
		skipped := o.skipped(key)
		skips += len(skipped)
		run.Aggregates = append(run.Aggregates, verify.Aggregate{ID: key, Version: eachKey, Sequence: eachKey})
		sequences, left := map[string]int64{}, d.Events
		message := func(id string) {
			run.Messages = append(run.Messages, verify.Message{ID: id, Session: key, Subject: "Changed", Version: sequences[id], Sequence: sequences[id]})
		}
		for sequence := int64(1); sequence <= eachKey; sequence++ {
			id := eventID(key, sequence)
			sequences[id] = sequence
			run.Events = append(run.Events, verify.Event{ID: id, Key: key, Action: "Changed", Version: sequence, Sequence: sequence})
		}
		for _, e := range run.Events[len(run.Events)-eachKey:] {
			if slices.Contains(skipped, e.ID) {
				message(e.ID)
			} else if len(left) > 0 {
				message(left[0])
				left = left[1:]
			}
		}
		for _, id := range left {
			message(id)
		}
	}
	return run, skips
}
