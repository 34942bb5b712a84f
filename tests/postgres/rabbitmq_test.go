package postgres

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"feedbox/infrastructure/badnet"
	"feedbox/infrastructure/rabbitmq"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// rabbit is RabbitMQ with a group of consumers, and what they got.
type rabbit struct {
	*servers.RabbitMQ
	ledger servers.Ledger
}

// startBroker starts RabbitMQ with an exchange, and consumes what one group gets of it.
func startBroker(t *testing.T) *rabbit {
	t.Helper()
	r := &rabbit{RabbitMQ: servers.StartRabbitMQ(t)}
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: r.URL})
	must(t, err)
	group := rabbitmq.Group{Name: "billing", Queues: 4}
	must(t, rabbitmq.Declare(t.Context(), client, "contacts", group))
	t.Cleanup(func() { must(t, client.Close()) })
	consumer, err := rabbitmq.NewConsumer(client, group, r.ledger.Handle, &rabbitmq.ConsumerOptions{Options: r.ledger.Options()})
	servers.Consume(t, consumer, err)
	return r
}

// loadOn has contacts changed without an end.
func loadOn(t *testing.T, w *world, seed uint64) (load *testkit.Workload, stop func()) {
	t.Helper()
	load = &testkit.Workload{
		Base: w.endpoints.API, Client: testkit.HTTPClient(t, 8), Contacts: 40, Changes: 1_000_000, Writers: 8, Pace: 20 * time.Millisecond, Seed: int64(seed),
	}
	return load, testkit.Background(t, load)
}

// judgeInbox waits for all that is stored, as a consumer with an inbox gets it, and verifies
// the run.
func (w *world) judgeInbox(t *testing.T, broker *rabbit, load *testkit.Workload) {
	t.Helper()
	var history testkit.History
	history.Add(load)
	judged := history.Run()
	judged.Aggregates, judged.Events = w.stored(t)
	// How long it takes depends on how many there are: as long as more come, none is missing.
	moved, seen := time.Now(), 0
	for seen < len(judged.Events) {
		if now := broker.ledger.Count(); now > seen {
			moved, seen = time.Now(), now
		} else if time.Since(moved) > 2*time.Minute {
			t.Fatalf("%d of %d events, and no more for two minutes", seen, len(judged.Events))
		}
		time.Sleep(20 * time.Millisecond)
	}
	judged.Messages, judged.Repeats = broker.ledger.Messages()
	t.Logf("%s; %d repeats kept away by the inbox", judged.Summary(), judged.Repeats)
	for _, breach := range judged.Verify() {
		t.Error(breach)
	}
}

// Nothing of Azure: contacts in PostgreSQL, their events in RabbitMQ. Each server is killed in
// turn under load.
func TestWithRabbitMQ(t *testing.T) {
	seed := testkit.Seed(t, 2)
	cycles := testkit.Count(t, 50)
	random := rand.New(rand.NewPCG(seed, 0))
	broker := startBroker(t)
	w := newWorld(t, "FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL="+broker.URL)
	load, stop := loadOn(t, w, seed)
	for cycle := range cycles {
		before := load.Done()
		testkit.Eventually(t, 60*time.Second, fmt.Sprint("changes in cycle ", cycle), func() bool { return load.Done() > before+20 })
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		if cycle%2 == 0 {
			broker.Kill()
			broker.Start()
			continue
		}
		w.server.Kill(t)
		w.server.Start(t)
	}
	stop()
	w.judgeInbox(t, broker, load)
}

// The network between relay and RabbitMQ is cut, in three ways, under load: what is on its way
// comes late, or never and nobody is told, or the connections end.
func TestPartition(t *testing.T) {
	seed := testkit.Seed(t, 3)
	cycles := testkit.Count(t, 30)
	random := rand.New(rand.NewPCG(seed, 0))
	broker := startBroker(t)
	address, err := url.Parse(broker.URL)
	must(t, err)
	network, err := badnet.Start(address.Host)
	must(t, err)
	t.Cleanup(network.Close)
	address.Host = network.Addr()
	w := newWorld(t, "FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL="+address.String())
	load, stop := loadOn(t, w, seed)
	for cycle := range max(3, cycles) {
		before := load.Done()
		testkit.Eventually(t, 60*time.Second, fmt.Sprint("changes in cycle ", cycle), func() bool { return load.Done() > before+20 })
		cut := badnet.Way{Hold: true}
		switch cycle % 3 {
		case 0:
			network.Set(cut, cut)
		case 1:
			network.Set(badnet.Way{}, cut) // confirmations only
			network.Lose()
		default:
			network.Reset()
		}
		time.Sleep(time.Duration(500+random.IntN(2500)) * time.Millisecond)
		network.Heal()
	}
	stop()
	w.judgeInbox(t, broker, load)
}
