package wiring

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/jackc/pgx/v5"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/postgres"
	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// twoRegions answers like an account with one write region and two read regions.
type twoRegions struct {
	mu   sync.Mutex // guards read
	read []string   // hosts of the read requests
}

func (a *twoRegions) Do(r *http.Request) (*http.Response, error) {
	status, body := http.StatusNotFound, `{}`
	if r.URL.Path == "/" || r.URL.Path == "" {
		status, body = http.StatusOK, `{"id":"a","writableLocations":[{"name":"East","databaseAccountEndpoint":"https://a-east.example:443/"}],`+
			`"readableLocations":[{"name":"East","databaseAccountEndpoint":"https://a-east.example:443/"},{"name":"West","databaseAccountEndpoint":"https://a-west.example:443/"}]}`
	} else {
		a.mu.Lock()
		a.read = append(a.read, r.URL.Hostname())
		a.mu.Unlock()
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// The client of both processes reads from the preferred region.
func TestReadsGoToThePreferredRegion(t *testing.T) {
	for regions, want := range map[string]string{"": "a-east.example", "West": "a-west.example", "Nowhere, West ,East": "a-west.example", "East,West": "a-east.example"} {
		cfg, err := config.LoadAPI([]string{
			"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=" + base64.StdEncoding.EncodeToString([]byte("key")),
			"FEEDBOX_COSMOS_PREFERRED_REGIONS=" + regions,
		})
		if err != nil {
			t.Fatal(err)
		}
		account := &twoRegions{}
		client, err := Params{CosmosTransport: account}.cosmosClient(cfg.Cosmos, tracing.Provider{})
		if err != nil {
			t.Fatal(err)
		}
		container, err := client.NewContainer("contacts", "data")
		if err != nil {
			t.Fatal(err)
		}
		_, err = container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("k"), "x", nil)
		if err == nil || len(account.read) == 0 || account.read[len(account.read)-1] != want {
			t.Errorf("%q: read from %q, want %s (%v)", regions, account.read, want, err)
		}
		client.Close()
	}
}

// A caller that forgets a constructor gets an error that names it, not a panic.
func TestZeroValuesReturnErrors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var nilRelay *relayservice.Service
	for name, call := range map[string]func(context.Context) error{
		"relay Run":             (&relayservice.Service{}).Run,
		"relay Run of nil":      nilRelay.Run,
		"relay Verify":          (&relayservice.Service{}).Verify,
		"relay Relay":           (&relayservice.Service{}).Relay,
		"relay Ready":           func(context.Context) error { return (&relayservice.Service{}).Ready() },
		"relay Lag":             func(context.Context) error { _ = (&relayservice.Service{}).Lag(); return errors.New("made by New") },
		"change feed processor": (&changefeed.Processor{}).Run,
		"session processor":     (&subscriber.SessionProcessor{}).Run,
		"processor":             (&subscriber.Processor{}).Run,
		"RabbitMQ consumer":     (&rabbitmq.Consumer{}).Run,
		"SQS consumer":          (&sqs.Consumer{}).Run,
		"API":                   func(ctx context.Context) error { return (&httpapi.Server{}).Run(ctx, listener) },
		"mux": func(context.Context) error {
			m := &consumer.Mux{}
			consumer.On(m, "Placed", func(context.Context, *consumer.Event, struct{}) error { return nil })
			_, err := m.Handler()
			return errors.Join(err, errors.New("made by New"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if err := call(ctx); err == nil || !strings.Contains(err.Error(), "made by New") {
				t.Errorf("%v; want an error that names the constructor", err)
			}
		})
	}
}

// faultyStore is opened with err, and records its close.
type faultyStore struct {
	cosmosStore
	err    error
	closed *int
}

func (s faultyStore) open(Params, *config.Relay, use) (operator.Store, error) {
	return operator.Store{Close: func() { *s.closed++ }}, s.err
}

// faultyBroker is opened with an error and a connection.
type faultyBroker struct {
	serviceBusBroker
	closed *int
}

func (b faultyBroker) open(Params, *config.Relay, string) (operator.Broker, error) {
	return operator.Broker{Close: func(context.Context) error { *b.closed++; return nil }}, errors.New("broker refused")
}

func TestOperatorThatCannotBeBuiltLeavesNothingOpen(t *testing.T) {
	cfg := &config.Relay{Store: config.Store{Kind: config.StorePostgres}, Broker: config.Broker{Kind: config.BrokerSQS}, SQS: config.SQS{QueueURL: "https://h/q.fifo"}}
	storeBefore, brokerBefore := stores[cfg.Store.Kind], brokers[cfg.Broker.Kind]
	defer func() { stores[cfg.Store.Kind], brokers[cfg.Broker.Kind] = storeBefore, brokerBefore }()
	for _, c := range []struct {
		err    error // of the store
		want   string
		broker int // times closed
	}{{errors.New("store refused"), "store refused", 0}, {nil, "broker refused", 1}} {
		var store, broker int
		stores[cfg.Store.Kind], brokers[cfg.Broker.Kind] = faultyStore{err: c.err, closed: &store}, faultyBroker{closed: &broker}
		o, err := Operator(cfg, Params{})
		if o != nil || err == nil || !strings.Contains(err.Error(), c.want) || store != 1 || broker != c.broker {
			t.Errorf("%s: %v; closed the store %d and the broker %d times; want once and %d times", c.want, err, store, broker, c.broker)
		}
	}
}

// entra is an identity whose token for PostgreSQL is in a file.
type entra string

func (f entra) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if len(o.Scopes) != 1 || o.Scopes[0] != "https://ossrdbms-aad.database.windows.net/.default" {
		return azcore.AccessToken{}, errors.New("another scope")
	}
	text, err := os.ReadFile(string(f))
	return azcore.AccessToken{Token: string(text)}, err
}

// Tokens of identities expire after minutes. Connections that are open stay open.
func TestPasswordOfPostgreSQLIsReadForEachConnection(t *testing.T) {
	url := servers.StartPostgres(t).Database(t)
	ctx := t.Context()
	admin, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.Background()) }()
	do := func(t *testing.T, sql string) {
		t.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	var hba string
	if err := admin.QueryRow(ctx, "SHOW hba_file").Scan(&hba); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(hba)
	if err == nil {
		err = os.WriteFile(hba, append([]byte("host all rotating 127.0.0.1/32 scram-sha-256\n"), rules...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	do(t, "SELECT pg_reload_conf()")
	do(t, "CREATE ROLE rotating LOGIN")
	url = strings.Replace(url, "feedbox@", "rotating:outdated@", 1)
	file := filepath.Join(t.TempDir(), "password")
	for name, c := range map[string]struct {
		cfg config.Postgres
		p   Params
	}{
		"file":     {cfg: config.Postgres{PasswordFile: file}},
		"command":  {cfg: config.Postgres{PasswordCommand: "cat  " + file}},
		"identity": {config.Postgres{Identity: "entra"}, Params{Credential: entra(file)}},
	} {
		t.Run(name, func(t *testing.T) {
			_ = c.cfg.URL.UnmarshalText([]byte(url)) // it has no errors
			db, err := c.p.openPostgres(c.cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := os.WriteFile(file, []byte("outdated"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, password := range []string{"first", "second", "third"} {
				do(t, "ALTER ROLE rotating PASSWORD '"+password+"'")
				do(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotating'")
				testkit.Eventually(t, time.Minute, "the old password is refused", func() bool {
					_, err := db.State(ctx)
					return err != nil && strings.Contains(err.Error(), "password authentication failed")
				})
				if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := db.State(ctx); err != nil {
					t.Errorf("after the rotation: %v", err)
				}
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if _, err := db.State(ctx); err != nil {
				t.Errorf("on an open connection: %v", err)
			}
			do(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotating'")
			testkit.Eventually(t, time.Minute, "the missing password is reported", func() bool {
				_, err := db.State(ctx)
				return err != nil && strings.Contains(err.Error(), "get the password") && !postgres.Records{}.Ambiguous(err)
			})
		})
	}
}

// The token of AWS is a signature for one host, port and user.
func TestPasswordOfRDSIsSignedForTheServer(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	password, err := Params{}.postgresPassword(config.Postgres{Identity: "aws"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.ParseConfig("postgres://relay@db.example:5433/contacts")
	if err != nil {
		t.Fatal(err)
	}
	token, err := password(t.Context(), c)
	for _, part := range []string{"db.example:5433", "Action=connect", "DBUser=relay", "eu-west-1", "X-Amz-Signature="} {
		if err != nil || !strings.Contains(token, part) {
			t.Errorf("token %s without %s, %v", token, part, err)
		}
	}
}

// The broker of a relay has the configured shards, with a client for each namespace.
func TestShardsOfTheConfiguration(t *testing.T) {
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_SERVICEBUS_SHARDS=e0,e1@b.example,e2@b.example",
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=Endpoint=sb://a.example/;SharedAccessKeyName=root;SharedAccessKey=a2V5",
	})
	if err != nil {
		t.Fatal(err)
	}
	var dialed sync.Map
	broker, err := serviceBusBroker{}.open(Params{Credential: tokens{}, ServiceBusDial: func(_ context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
		dialed.Store(args.Host, true)
		return nil, errors.New("away")
	}}, cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(broker.Shards, cfg.Shards()) || broker.Destination != "contacts" {
		t.Errorf("shards %v to %s", broker.Shards, broker.Destination)
	}
	publisher, err := broker.Open(slog.New(slog.DiscardHandler), func(context.Context, relay.BatchReport) {})
	if err != nil {
		t.Fatal(err)
	}
	var groups []relay.Group
	for i := range 20 {
		key := fmt.Sprint("key-", i)
		groups = append(groups, relay.Group{Key: key, Messages: []relay.Message{{ID: key, Key: key}}})
	}
	if err := publisher.Publish(t.Context(), groups); err == nil {
		t.Error("published without a connection")
	}
	for _, host := range []string{"wss://a.example/$servicebus/websocket", "wss://b.example/$servicebus/websocket"} {
		if _, ok := dialed.Load(host); !ok {
			t.Errorf("%s was not dialed", host)
		}
	}
	if err := errors.Join(publisher.Close(t.Context()), broker.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
