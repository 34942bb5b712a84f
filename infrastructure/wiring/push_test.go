package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/fx"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/process/config"
	"feedbox/tests/servers"
)

// pushed is an HTTP endpoint that records the ids of the events of each key. answer, if set, decides.
type pushed struct {
	*httptest.Server
	mu     sync.Mutex
	ids    map[string][]string
	tokens map[string]bool

	resubmitted bool // an event had the attribute resubmission
}

func receive(t *testing.T, answer func(w http.ResponseWriter, id string) (accepted bool)) *pushed {
	p := &pushed{ids: map[string][]string{}, tokens: map[string]bool{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e struct{ ID, Subject, Partitionkey, Resubmission string }
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%q: %v", body, err)
		}
		id := e.ID
		if e.Subject != "" {
			id = e.Subject
		}
		if answer != nil && !answer(w, id) {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ids[e.Partitionkey] = append(p.ids[e.Partitionkey], id)
		p.tokens[r.Header.Get("Authorization")] = true
		p.resubmitted = p.resubmitted || e.Resubmission != ""
	}))
	t.Cleanup(p.Close)
	return p
}

// await waits for n events and returns their ids by key.
func (p *pushed) await(t *testing.T, n int) map[string][]string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		got, all := 0, map[string][]string{}
		for key, ids := range p.ids {
			all[key] = slices.Clone(ids)
			got += len(ids)
		}
		p.mu.Unlock()
		if got >= n {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events: %v", got, n, all)
		}
	}
}

// runs runs a process until the returned function is called, which requires a clean stop.
func runs(t *testing.T, module func(Params) fx.Option) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan error, 1)
	app := fx.New(module(Params{Log: slog.New(slog.DiscardHandler), Credential: tokens{}}))
	go func() { ended <- Run(ctx, app, func() { close(started) }) }()
	select {
	case <-started:
	case err := <-ended:
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

type tokens struct{}

func (tokens) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "for " + o.Scopes[0], ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// The events of a subscription reach the receiver in order. A refused one is dead-lettered with the
// text of the answer. A stop during an outage returns the held event to the broker at once.
func TestPushSendsTheEventsOfASubscription(t *testing.T) {
	billing := busemu.Subscription{Name: "billing"}
	billing.RequiresSession = true
	srv, err := busemu.Start(&busemu.Options{AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{{Name: "contacts", Subscriptions: []busemu.Subscription{billing}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	client := srv.Client()
	sender, err := client.NewSender("contacts", nil)
	if err != nil {
		t.Fatal(err)
	}
	const keys, each = 5, 8
	send := func(key string, n int64) {
		id := fmt.Sprintf("%s-%d", key, n)
		if err := sender.SendMessage(t.Context(), &azservicebus.Message{
			MessageID: &id, SessionID: &key, Subject: new("OrderPaid"), Body: []byte(`{}`), ApplicationProperties: map[string]any{"sequence": n},
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n := range each {
		for k := range keys {
			send(fmt.Sprint("key", k), int64(n+1))
		}
	}
	held := make(chan struct{}, 100)
	p := receive(t, func(w http.ResponseWriter, id string) bool {
		switch id {
		case "key2-3":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, "no such order")
			return false
		case "down-1":
			w.WriteHeader(http.StatusInternalServerError)
			held <- struct{}{}
			return false
		}
		return true
	})
	cfg, err := config.LoadPush([]string{
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + srv.ConnectionString(), "FEEDBOX_PUSH_FROM=billing", "FEEDBOX_PUSH_TO=" + p.URL, "FEEDBOX_PUSH_SCOPE=api://orders/.default",
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := runs(t, func(given Params) fx.Option { return Push(cfg, given) })
	for key, ids := range p.await(t, keys*each-1) {
		var want []string
		for n := 1; n <= each; n++ {
			if id := fmt.Sprintf("%s-%d", key, n); id != "key2-3" {
				want = append(want, id)
			}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s: %v, want %v", key, ids, want)
		}
	}
	if !p.tokens["Bearer for api://orders/.default"] || len(p.tokens) != 1 {
		t.Errorf("tokens %v", p.tokens)
	}
	send("down", 1)
	<-held
	began := time.Now()
	stop()
	if took := time.Since(began); took > cfg.DrainTimeout/2 {
		t.Errorf("the stop took %s, like a drain of the held event", took)
	}
	dead, err := client.NewReceiverForSubscription("contacts", "billing", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	letters, err := dead.ReceiveMessages(ctx, 10, nil)
	if err != nil || len(letters) != 1 || letters[0].MessageID != "key2-3" || *letters[0].DeadLetterReason != "refused_422" || *letters[0].DeadLetterErrorDescription != "the receiver answered 422 Unprocessable Entity: no such order" {
		t.Errorf("dead letters: %+v, %v", letters, err)
	}
}

// TestMain ends the servers that tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range slices.Backward(lasting.ends) {
		end()
	}
	os.Exit(code)
}

// lasting holds the servers of all tests, because each costs seconds of processor time. Its tests are
// not parallel. Each takes queues of its own.
var lasting struct {
	rabbit *servers.RabbitMQ
	sqs    string // endpoint
	queues int
	ends   []func()
}

// untilEnd is a test whose servers run until all tests have ended.
type untilEnd struct{ *testing.T }

func (untilEnd) Cleanup(end func()) { lasting.ends = append(lasting.ends, end) }

func (u untilEnd) TempDir() string {
	dir, err := os.MkdirTemp("", "feedbox-wiring-")
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// pushSource is a broker with a consumer that push serves.
type pushSource struct {
	environ []string
	send    func(action, key string, n int64)
	letters func() (ids []string) // dead letters; nil: not declared
}

// pushSources start the brokers.
var pushSources = map[string]func(t *testing.T) pushSource{"servicebus": busSource, "rabbitmq": rabbitSource, "sqs": sqsSource}

func busSource(t *testing.T) pushSource {
	billing := busemu.Subscription{Name: "billing"}
	billing.RequiresSession = true
	srv, err := busemu.Start(&busemu.Options{AdminAddr: "-", Topology: &busemu.Topology{Topics: []busemu.Topic{{Name: "contacts", Subscriptions: []busemu.Subscription{billing}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	sender, err := srv.Client().NewSender("contacts", nil)
	if err != nil {
		t.Fatal(err)
	}
	return pushSource{[]string{"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + srv.ConnectionString(), "FEEDBOX_PUSH_FROM=billing"}, func(action, key string, n int64) {
		id := fmt.Sprintf("%s-%d", key, n)
		if err := sender.SendMessage(t.Context(), &azservicebus.Message{
			MessageID: &id, SessionID: &key, Subject: &action, Body: []byte(`{}`), ApplicationProperties: map[string]any{"sequence": n, "partitionKey": key},
		}, nil); err != nil {
			t.Fatal(err)
		}
	}, func() (ids []string) {
		dead, err := srv.Client().NewReceiverForSubscription("contacts", "billing", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		letters, err := dead.ReceiveMessages(ctx, 10, nil)
		if err != nil {
			t.Error(err)
		}
		for _, letter := range letters {
			ids = append(ids, letter.MessageID)
		}
		return ids
	}}
}

func rabbitSource(t *testing.T) pushSource {
	if lasting.rabbit == nil {
		lasting.rabbit = servers.StartRabbitMQ(untilEnd{t})
	}
	lasting.queues++
	server, name := lasting.rabbit, fmt.Sprint("billing", lasting.queues)
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rabbitmq.Declare(t.Context(), client, "orders", rabbitmq.Group{Name: name, Queues: 1}), client.Close()); err != nil {
		t.Fatal(err)
	}
	connection, err := amqp.Dial(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return pushSource{[]string{"FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL=" + server.URL, "FEEDBOX_PUSH_FROM=" + name + ":1"}, func(action, key string, n int64) {
		if err := channel.PublishWithContext(t.Context(), "", name+".0", false, false, amqp.Publishing{
			MessageId: fmt.Sprintf("%s-%d", key, n), Type: action, Body: []byte(`{}`), Headers: amqp.Table{"partitionKey": key, "sequence": n},
		}); err != nil {
			t.Fatal(err)
		}
	}, func() (ids []string) {
		letter, found, err := channel.Get(name+".dead-letters", true)
		for ; found && err == nil; letter, found, err = channel.Get(name+".dead-letters", true) {
			ids = append(ids, letter.MessageId)
		}
		if err != nil {
			t.Error(err)
		}
		return ids
	}}
}

func sqsSource(t *testing.T) pushSource {
	if lasting.sqs == "" {
		lasting.sqs = servers.StartSQS(untilEnd{t})
	}
	lasting.queues++
	endpoint := lasting.sqs
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	client, err := SQSClient(config.SQS{Region: "eu-west-1", Endpoint: config.Address(endpoint)})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: new(fmt.Sprintf("orders%d.fifo", lasting.queues)), Attributes: map[string]string{"FifoQueue": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind, value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: &kind, StringValue: &value}
	}
	return pushSource{[]string{"FEEDBOX_BROKER=sqs", "FEEDBOX_SQS_REGION=eu-west-1", "FEEDBOX_SQS_ENDPOINT=" + endpoint, "FEEDBOX_PUSH_FROM=" + *queue.QueueUrl}, func(action, key string, n int64) {
		id := fmt.Sprintf("%s-%d", key, n)
		if _, err := client.SendMessage(t.Context(), &awssqs.SendMessageInput{
			QueueUrl: queue.QueueUrl, MessageBody: new(`{}`), MessageGroupId: &key, MessageDeduplicationId: &id,
			MessageAttributes: map[string]types.MessageAttributeValue{"partitionKey": text("String", key), "sequence": text("Number", fmt.Sprint(n)), "cloudEvents_id": text("String", id), "cloudEvents_type": text("String", action)},
		}); err != nil {
			t.Fatal(err)
		}
	}, nil}
}

// With FEEDBOX_PUSH_PARK a refused event holds back the later ones of its key until an operator has
// retried them, on each broker. The receiver gets all events of each key in order, and the retried ones
// like the others, because it compares their sequence with that of the key.
func TestPushParksRefusedEvents(t *testing.T) {
	const keys, each, refused = 3, 5, "key1-3"
	for name, start := range pushSources {
		t.Run(name, func(t *testing.T) {
			account, err := cosmosemu.Start(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = account.Close() }()
			if err := account.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{"/partitionKey"}}); err != nil {
				t.Fatal(err)
			}
			source := start(t)
			for n := range int64(each) {
				for k := range keys {
					source.send("OrderPaid", fmt.Sprint("key", k), n+1)
				}
			}
			var repaired atomic.Bool
			p := receive(t, func(w http.ResponseWriter, id string) bool {
				if id == refused && !repaired.Load() {
					w.WriteHeader(http.StatusUnprocessableEntity)
					return false
				}
				return true
			})
			store := []string{"FEEDBOX_COSMOS_ENDPOINT=" + account.Endpoint(), "FEEDBOX_COSMOS_KEY=" + account.Key()}
			cfg, err := config.LoadPush(append(append(source.environ, store...), "FEEDBOX_PUSH_TO="+p.URL, "FEEDBOX_PUSH_PARK=billing", "FEEDBOX_PARKED_POLL=200ms"))
			if err != nil {
				t.Fatal(err)
			}
			stop := runs(t, func(given Params) fx.Option { return Push(cfg, given) })
			if got := p.await(t, keys*each-3)["key1"]; !slices.Equal(got, []string{"key1-1", "key1-2"}) {
				t.Errorf("before the retry: %v", got)
			}
			o, err := Operator(mustRelay(t, account), Params{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = o.Close(t.Context()) }()
			if err := o.OfConsumer("billing"); err != nil {
				t.Fatal(err)
			}
			gate := func(events int64) {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
					g, err := o.Parked.Gate(t.Context(), "key1")
					if err == nil && g.Events == events && g.Closing.Reason == "refused_422" || events == 0 && fault.Is(err, fault.NotFound) {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("gate %+v, %v, want %d events", g, err, events)
					}
				}
			}
			gate(3)
			repaired.Store(true)
			if _, err := o.Note(t.Context(), "key1", relay.Intent{Verb: relay.VerbRetry, By: "ann"}); err != nil {
				t.Fatal(err)
			}
			gate(0)
			source.send("OrderPaid", "key1", each+1)
			got := p.await(t, keys*each+1)
			stop()
			for k, last := range []int{each, each + 1, each} {
				var want []string
				for n := 1; n <= last; n++ {
					want = append(want, fmt.Sprintf("key%d-%d", k, n))
				}
				if ids := got[fmt.Sprint("key", k)]; !slices.Equal(ids, want) {
					t.Errorf("key%d: %v, want %v", k, ids, want)
				}
			}
			if p.resubmitted {
				t.Error("a parked event was sent as a resubmission")
			}
		})
	}
}

// The policy of an action decides about its statuses, its attempts and its refused events, with the kit of each
// broker. The order of a parked key includes events whose own policy parks nothing.
func TestPushTreatsFailuresByAction(t *testing.T) {
	for _, name := range []string{"servicebus", "rabbitmq"} {
		t.Run(name, func(t *testing.T) {
			account, err := cosmosemu.Start(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = account.Close() }()
			if err := account.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{"/partitionKey"}}); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "policies.json")
			if err := os.WriteFile(file, []byte(`{
				"PageViewed": {"refused": [400], "then": "drop"},
				"OrderPaid": {"attempts": 2, "backoff": "100ms", "then": "dead-letter"},
				"*": {"then": "park"}
			}`), 0o600); err != nil {
				t.Fatal(err)
			}
			var attempts atomic.Int64
			p := receive(t, func(w http.ResponseWriter, id string) bool {
				status, refused := map[string]int{"views-2": 400, "orders-2": 500, "contacts-2": 422}[id]
				if id == "orders-2" {
					attempts.Add(1)
				}
				if refused {
					w.WriteHeader(status)
				}
				return !refused
			})
			source := pushSources[name](t)
			cfg, err := config.LoadPush(append(source.environ, "FEEDBOX_PUSH_TO="+p.URL, "FEEDBOX_PUSH_POLICIES="+file, "FEEDBOX_PUSH_PARK=billing", "FEEDBOX_COSMOS_ENDPOINT="+account.Endpoint(), "FEEDBOX_COSMOS_KEY="+account.Key()))
			if err != nil {
				t.Fatal(err)
			}
			for n := range int64(3) {
				source.send("PageViewed", "views", n+1)
				source.send("OrderPaid", "orders", n+1)
				source.send("ContactCreated", "contacts", n+1)
			}
			source.send("PageViewed", "contacts", 4)
			stop := runs(t, func(given Params) fx.Option { return Push(cfg, given) })
			deadline, n := time.Now().Add(time.Minute), 0
			for len(p.await(t, 4+n)["orders"]) < 2 { // views-1, views-3, orders-1, contacts-1, and others
				if time.Now().After(deadline) {
					t.Fatalf("orders-2 is held after %d attempts", attempts.Load())
				}
				n++
				source.send("ContactCreated", "others", int64(n)) // attempts count while other events are accepted
			}
			got := p.await(t, 5+n)
			delete(got, "others")
			// A failure counts if another event was accepted during its request, so there may be more attempts.
			if text := fmt.Sprint(got); text != "map[contacts:[contacts-1] orders:[orders-1 orders-3] views:[views-1 views-3]]" || attempts.Load() < 2 {
				t.Errorf("received %s, %d attempts of orders-2", text, attempts.Load())
			}
			parked, err := Operator(mustRelay(t, account), Params{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = parked.Close(t.Context()) }()
			if err := parked.OfConsumer("billing"); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				gate, err := parked.Parked.Gate(t.Context(), "contacts")
				if err == nil && gate.Events == 3 && gate.Closing.Reason == "refused_422" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("gate of contacts %+v, %v", gate, err)
				}
			}
			if letters := source.letters(); !slices.Equal(letters, []string{"orders-2"}) {
				t.Errorf("dead letters %v", letters)
			}
			for _, key := range []string{"views", "orders"} {
				if _, err := parked.Parked.Gate(t.Context(), key); !fault.Is(err, fault.NotFound) {
					t.Errorf("gate of %s: %v", key, err)
				}
			}
			stop()
		})
	}
}

// mustRelay returns the configuration of an operator without a broker.
func mustRelay(t *testing.T, account *cosmosemu.Server) *config.Relay {
	t.Helper()
	cfg, err := config.LoadRelay([]string{"FEEDBOX_COSMOS_ENDPOINT=" + account.Endpoint(), "FEEDBOX_COSMOS_KEY=" + account.Key()})
	if err := config.WithoutBroker(err); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A group of RabbitMQ and a FIFO queue of SQS are sources of push, too.
func TestPushSendsTheEventsOfOtherBrokers(t *testing.T) {
	const keys, each = 3, 5
	for _, name := range []string{"rabbitmq", "sqs"} {
		t.Run(name, func(t *testing.T) {
			source := pushSources[name](t)
			for n := range int64(each) {
				for k := range keys {
					source.send("OrderPaid", fmt.Sprint("key", k), n+1)
				}
			}
			p := receive(t, nil)
			cfg, err := config.LoadPush(append(source.environ, "FEEDBOX_PUSH_TO="+p.URL))
			if err != nil {
				t.Fatal(err)
			}
			stop := runs(t, func(given Params) fx.Option { return Push(cfg, given) })
			got := p.await(t, keys*each)
			stop()
			for k := range keys {
				var want []string
				for n := 1; n <= each; n++ {
					want = append(want, fmt.Sprintf("key%d-%d", k, n))
				}
				if ids := got[fmt.Sprint("key", k)]; !slices.Equal(ids, want) {
					t.Errorf("key%d: %v, want %v", k, ids, want)
				}
			}
		})
	}
}
