//go:build faults

package brokers

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/infrastructure/rabbitmq"
	"feedbox/infrastructure/sqs"
	"feedbox/infrastructure/verify"
	"feedbox/tests/servers"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// broker is one that a relay sends to and a consumer receives from.
type broker struct {
	env     []string                                            // of the relay
	kill    func()                                              // kills it and starts it again; nil: it is not killed
	consume func(t *testing.T, l *servers.Ledger) (stop func()) // runs a consumer that writes into l
}

// TestRabbitMQ: relays and the broker itself are killed under load. What the broker confirmed
// outlives it, and what is sent again because a confirmation was lost is for the inbox.
func TestRabbitMQ(t *testing.T) {
	server := servers.StartRabbitMQ(t)
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := rabbitmq.Declare(t.Context(), client, "contacts", rabbitmq.Group{Name: "billing", Queues: 4}); err != nil {
		t.Fatal(err)
	}
	keepPromises(t, broker{
		env:  []string{"FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL=" + server.URL},
		kill: func() { server.Kill(); server.Start() },
		consume: func(t *testing.T, l *servers.Ledger) func() {
			own, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = own.Close() })
			c, err := rabbitmq.NewConsumer(own, rabbitmq.Group{Name: "billing", Queues: 4}, l.Handle, &rabbitmq.ConsumerOptions{Options: l.Options()})
			return servers.Consume(t, c, err)
		},
	})
}

// TestSQS: relays are killed under load. The server that stands for SQS keeps its queues in
// memory and is not killed.
func TestSQS(t *testing.T) {
	endpoint := servers.StartSQS(t)
	client := awssqs.New(awssqs.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	queue, err := sqs.Declare(t.Context(), client, "contacts.fifo")
	if err != nil {
		t.Fatal(err)
	}
	keepPromises(t, broker{
		env: []string{
			"FEEDBOX_BROKER=sqs", "FEEDBOX_SQS_QUEUE_URL=" + queue, "FEEDBOX_SQS_ENDPOINT=" + endpoint, "FEEDBOX_SQS_REGION=eu-west-1",
			"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b",
		},
		consume: func(t *testing.T, l *servers.Ledger) func() {
			c, err := sqs.NewConsumer(client, queue, l.Handle, &sqs.ConsumerOptions{Options: l.Options(), Visibility: 5 * time.Second})
			return servers.Consume(t, c, err)
		},
	})
}

// keepPromises changes contacts while two relays are killed and replaced, and judges what
// consumers with one inbox make of it.
func keepPromises(t *testing.T, b broker) {
	cycles := testenv.Count(t, "BROKER_KILLS", 3)
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))
	binaries := testkit.Build(t)
	_, e := testkit.StartDev(t, binaries, "emulators", "--ephemeral", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0")
	_, api := testkit.StartAPI(t, binaries, e)
	started := 0
	relay := func() *testkit.Process {
		started++
		name := fmt.Sprintf("relay-%d", started)
		return testkit.Start(t, name, binaries.Feedbox, append(e.ServiceEnv("FEEDBOX_INSTANCE="+name, "FEEDBOX_LEASE_EXPIRY=2s", "FEEDBOX_RELAY_POLL_MAX=100ms"), b.env...), "relay")
	}
	relays := []*testkit.Process{relay(), relay()}

	load := &testkit.Workload{
		Base: api, Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 10 * time.Second},
		Contacts: 50, Changes: 100 * (cycles + 1), Writers: 8, Seed: seed, Pace: 30 * time.Millisecond,
	}
	var ledger servers.Ledger
	b.consume(t, &ledger)
	stop := b.consume(t, &ledger)
	done := make(chan error, 1)
	go func() { done <- load.Run(t.Context()) }()
	for n := range cycles {
		time.Sleep(time.Duration(300+rnd.IntN(700)) * time.Millisecond)
		victim := n % len(relays)
		relays[victim].Kill()
		relays[victim] = relay()
		stop() // a consumer goes, another one comes
		stop = b.consume(t, &ledger)
		if b.kill != nil && n%2 == 0 {
			b.kill()
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	var run verify.Run
	run.Acked, run.Unknown, _ = load.History()
	run.LostCreates = load.LostCreates()
	run.Aggregates, run.Events = testkit.ReadStore(t.Context(), t, e.ContainerClient(t, e.Container))
	testkit.Eventually(t, 5*time.Minute, fmt.Sprintf("all %d events", len(run.Events)), func() bool { return ledger.Count() >= len(run.Events) })
	run.Messages, run.Repeats = ledger.Messages()
	t.Logf("%s; %d repeats kept away by the inbox; %d kills", run.Summary(), run.Repeats, cycles)
	for _, v := range run.Verify() {
		t.Error(v)
	}
}
