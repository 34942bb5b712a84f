//go:build faults

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cosmosinbox"
	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/store/cosmos/parked"
	"feedbox/tests/testkit"
)

const eachKey = 40 // events

// Consumers are killed with -9 at random while they handle events of which 1 in 100 is refused until an
// operator has removed the cause. The operator retries and skips at random. A journal of each key, which
// is stored with the mark of the inbox, has each event once and in order, unless it was skipped.
// FEEDBOX_PARKED_KEYS sets the number of keys: 25,000 are a million events.
func TestConsumersKilledAtRandom(t *testing.T) {
	const full = 40
	kills, seed := testkit.Count(t, full), testkit.Seed(t, 17)
	keys := 25 * kills
	if n, err := strconv.Atoi(os.Getenv("FEEDBOX_PARKED_KEYS")); err == nil {
		keys = n
	}
	rnd := rand.New(rand.NewPCG(seed, 2))
	_, e := testkit.StartDev(t, testkit.Build(t), testkit.EmulatorPorts("--ephemeral")...)
	plan := consumerPlan{Endpoints: e, Seed: seed, Cured: t.TempDir()}
	o := &consumerOperator{t: t, plan: plan, store: plan.parked(t), rnd: rnd, keys: keys}

	client, err := servicebus.NewClient(servicebus.ClientConfig{ConnectionString: e.ServiceBusConnectionString})
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := servicebus.NewPublisher(client, e.Topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	published := make(chan error, 1)
	go func() { published <- publishTo(t.Context(), publisher, keys) }()

	consumers := []*testkit.Process{plan.start(t, 0), plan.start(t, 1)}
	limit := time.Now().Add(3*time.Minute + time.Duration(kills)*3*time.Second + time.Duration(keys)*50*time.Millisecond)
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
	if err := errors.Join(<-published, publisher.Close(t.Context()), client.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	r := testkit.Result{Fault: "F17", Name: "kill -9 of consumers among refused events", Seed: seed, Injections: int64(kills), Of: full}
	run, skipped := o.run()
	testkit.Judge(t, &run, &r)
	r.Note = fmt.Sprintf("%d events, %d refused at first, %d skipped", len(run.Events), o.plan.refused(keys), skipped)
	t.Log(r.Note)
	testkit.Record(t, r)
}

func eventID(key string, sequence int64) string { return fmt.Sprintf("%s.%d", key, sequence) }

// publishTo sends the events of each key in four parts.
func publishTo(ctx context.Context, publisher *servicebus.Publisher, keys int) error {
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
			if err := publisher.Publish(ctx, groups); err != nil {
				return err
			}
		}
	}
	return nil
}

// consumerPlan is the input of a consumer's process.
type consumerPlan struct {
	Endpoints testkit.Endpoints
	Seed      uint64
	Cured     string // folder with a file for each event whose cause the operator has removed
}

// isPoison reports whether an event is refused until it is cured.
func (p *consumerPlan) isPoison(event string) bool {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, p.Seed, event)
	return rand.New(rand.NewPCG(h.Sum64(), 0)).IntN(100) == 0
}

func (p *consumerPlan) refused(keys int) (n int) {
	for key := range keys {
		for sequence := range int64(eachKey) {
			if p.isPoison(eventID(fmt.Sprint("key-", key), sequence+1)) {
				n++
			}
		}
	}
	return n
}

func (p *consumerPlan) parked(t *testing.T) *parked.Store {
	t.Helper()
	store, err := parked.NewStore(p.Endpoints.ContainerClient(t, p.Endpoints.Parked))
	if err != nil {
		t.Fatal(err)
	}
	of, err := store.Of("mail")
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func (p *consumerPlan) start(t *testing.T, n int) *testkit.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Start(t, fmt.Sprint("consumer-", n), self, []string{"FEEDBOX_TEST_CONSUMER=" + string(input)}, "-test.run=^TestConsumerProcess$")
}

// TestConsumerProcess is a consumer, in a process of its own.
func TestConsumerProcess(t *testing.T) {
	input := os.Getenv("FEEDBOX_TEST_CONSUMER")
	if input == "" {
		return // not started by the test
	}
	var p consumerPlan
	if err := json.Unmarshal([]byte(input), &p); err != nil {
		t.Fatal(err)
	}
	data := p.Endpoints.ContainerClient(t, p.Endpoints.Container)
	inbox, err := cosmosinbox.New(data, "mail", nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := func(ctx context.Context, e *consumer.Event) error {
		if _, err := os.Stat(filepath.Join(p.Cured, e.ID)); err != nil && p.isPoison(e.ID) {
			if e.Sequence%2 == 0 {
				return consumer.DeadLetter("poison", errors.New("cannot be handled yet"))
			}
			return errors.New("cannot be handled yet")
		}
		return journal(ctx, data, inbox, e)
	}
	kit, err := subscriber.NewSessionProcessor(servicebus.ClientConfig{ConnectionString: p.Endpoints.ServiceBusConnectionString}, subscriber.Subscription(p.Endpoints.Topic, p.Endpoints.Subscription), handler, &subscriber.SessionOptions{
		Inbox: inbox, Park: p.parked(t), ParkedPoll: time.Second, Attempts: 2, RetryDelay: 20 * time.Millisecond, RetryDelayMax: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	if err := kit.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// entries is the document of a journal.
type entries struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Events       []string `json:"events"`
}

func readJournal(ctx context.Context, data *azcosmos.ContainerClient, key string) (entries, azcore.ETag, error) {
	d := entries{ID: "journal", PartitionKey: key}
	reply, err := data.ReadItem(ctx, azcosmos.NewPartitionKeyString(key), d.ID, nil)
	if missing, ok := errors.AsType[*azcore.ResponseError](err); ok && missing.StatusCode == http.StatusNotFound {
		return d, "", nil
	}
	if err == nil {
		err = json.Unmarshal(reply.Value, &d)
	}
	return d, reply.ETag, err
}

// journal appends an event to the journal of its key, in one batch with the mark of the inbox.
func journal(ctx context.Context, data *azcosmos.ContainerClient, inbox *cosmosinbox.Inbox, e *consumer.Event) error {
	batch, err := inbox.Batch(ctx, e)
	if err != nil {
		return err
	}
	d, etag, err := readJournal(ctx, data, e.Key)
	if err != nil {
		return err
	}
	d.Events = append(d.Events, e.ID)
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if etag == "" {
		batch.CreateItem(body, nil)
	} else {
		batch.ReplaceItem(d.ID, body, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
	}
	return batch.Execute(ctx)
}

// consumerOperator removes causes, and retries and skips parked events at random.
type consumerOperator struct {
	t      *testing.T
	plan   consumerPlan
	store  *parked.Store
	rnd    *rand.Rand
	keys   int
	closed []string // keys, when operate looked
	known  int      // keys whose journals are complete, from the first on
}

func (o *consumerOperator) operate() {
	ctx := o.t.Context()
	var err error
	if o.closed, err = o.store.Closed(ctx); err != nil {
		o.t.Fatal(err)
	}
	for _, key := range o.closed {
		g, err := o.store.Gate(ctx, key)
		first, firstErr := o.store.First(ctx, key, 1, 1<<20)
		if err != nil || firstErr != nil || g.Intent != nil || len(first) == 0 {
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
