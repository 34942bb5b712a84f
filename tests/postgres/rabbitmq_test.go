package postgres

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"feedbox/infrastructure/rabbitmq"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// Nothing of Azure: contacts in PostgreSQL, their events in RabbitMQ. Each server is killed in
// turn under load.
func TestWithRabbitMQ(t *testing.T) {
	seed := testkit.Seed(t, 2)
	cycles := testkit.Count(t, 50)
	random := rand.New(rand.NewPCG(seed, 0))
	broker := servers.StartRabbitMQ(t)
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: broker.URL})
	must(t, err)
	must(t, rabbitmq.Declare(t.Context(), client, "contacts", rabbitmq.Group{Name: "billing", Queues: 4}))
	t.Cleanup(func() { must(t, client.Close()) })
	var ledger servers.Ledger
	consumer, err := rabbitmq.NewConsumer(client, rabbitmq.Group{Name: "billing", Queues: 4}, ledger.Handle, &rabbitmq.ConsumerOptions{Options: ledger.Options()})
	servers.Consume(t, consumer, err)
	w := newWorld(t, "FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL="+broker.URL)
	load := &testkit.Workload{
		Base: w.endpoints.API, Client: testkit.HTTPClient(t, 8), Contacts: 40, Changes: 1_000_000, Writers: 8, Pace: 5 * time.Millisecond, Seed: int64(seed),
	}
	stop := testkit.Background(t, load)
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
	var history testkit.History
	history.Add(load)
	judged := history.Run()
	judged.Aggregates, judged.Events = w.stored(t)
	testkit.Eventually(t, 2*time.Minute, "every stored event", func() bool { return ledger.Count() >= len(judged.Events) })
	judged.Messages, judged.Repeats = ledger.Messages()
	t.Logf("%s; %d repeats kept away by the inbox", judged.Summary(), judged.Repeats)
	for _, breach := range judged.Verify() {
		t.Error(breach)
	}
}
