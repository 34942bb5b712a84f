package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/process/config"
	"feedbox/tests/fuzzseed"
)

// relayEnviron is the least that a relay needs.
func relayEnviron(more ...string) []string {
	return append([]string{
		"PATH=/bin",
		"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/",
		"FEEDBOX_SERVICEBUS_NAMESPACE=contoso.servicebus.windows.net",
	}, more...)
}

func TestDefaults(t *testing.T) {
	api, err := config.LoadAPI([]string{"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/", "FEEDBOX_LOG_LEVEL="})
	if err != nil {
		t.Fatal(err)
	}
	if api.Listen != "127.0.0.1:8080" || api.OpsListen != "127.0.0.1:0" || api.EventTTL != 240*time.Hour || api.Log.Level != "info" {
		t.Errorf("unexpected API defaults: %+v", api)
	}
	if api.Cosmos.Database != "contacts" || api.Cosmos.Container != "data" || api.Cosmos.Key.IsSet() {
		t.Errorf("unexpected Cosmos defaults: %+v", api.Cosmos)
	}
	relay, err := config.LoadRelay(relayEnviron())
	if err != nil {
		t.Fatal(err)
	}
	if relay.Lease.Expiry != 20*time.Second || relay.Lease.Renew != 5*time.Second || relay.Lease.Acquire != 5*time.Second {
		t.Errorf("unexpected lease defaults: %+v", relay.Lease)
	}
	if relay.Processor != "feedbox" || relay.MaxItems != 0 || relay.Start != (config.Start{}) || relay.ServiceBus.Topic != "contacts" {
		t.Errorf("unexpected relay defaults: %+v", relay)
	}
	other, err := config.LoadRelay(relayEnviron())
	if err != nil || other.Instance == relay.Instance || relay.Instance == "" {
		t.Errorf("two relays share the instance name %q, %v", relay.Instance, err)
	}
}

func TestLeaseTimingsFollowExpiry(t *testing.T) {
	relay, err := config.LoadRelay(relayEnviron("FEEDBOX_LEASE_EXPIRY=3s"))
	if err != nil {
		t.Fatal(err)
	}
	if relay.Lease.Renew != 750*time.Millisecond || relay.Lease.Acquire != 750*time.Millisecond {
		t.Errorf("lease timings %+v do not follow the expiry", relay.Lease)
	}
}

func TestDrainDelayFollowsTheDrain(t *testing.T) {
	for name, tc := range map[string]struct {
		environ []string
		delay   time.Duration
		fault   string
	}{
		"default": {nil, 5 * time.Second, ""},
		"derived": {[]string{"FEEDBOX_DRAIN_TIMEOUT=2s"}, 500 * time.Millisecond, ""},
		"none":    {[]string{"FEEDBOX_API_DRAIN_DELAY=0s"}, 0, ""},
		"most":    {[]string{"FEEDBOX_API_DRAIN_DELAY=11s"}, 0, "more than half of FEEDBOX_DRAIN_TIMEOUT"},
	} {
		api, err := config.LoadAPI(append([]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example"}, tc.environ...))
		if tc.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || api.DrainDelay != tc.delay {
			t.Errorf("%s: %v, %v; want %v", name, api.DrainDelay, err, tc.delay)
		}
	}
}

func TestPreferredRegions(t *testing.T) {
	api, err := config.LoadAPI([]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_PREFERRED_REGIONS=West Europe,North Europe"})
	if err != nil || len(api.Cosmos.PreferredRegions) != 2 || api.Cosmos.PreferredRegions[0] != "West Europe" {
		t.Errorf("API: %q, %v", api.Cosmos.PreferredRegions, err)
	}
	relay, err := config.LoadRelay(relayEnviron("FEEDBOX_COSMOS_PREFERRED_REGIONS=West Europe"))
	if err != nil || len(relay.Cosmos.PreferredRegions) != 1 {
		t.Errorf("relay: %q, %v", relay.Cosmos.PreferredRegions, err)
	}
	if _, err := config.LoadRelay(relayEnviron("FEEDBOX_COSMOS_PREFERRED_REGIONS=West Europe,")); err == nil || !strings.Contains(err.Error(), "names a region that is empty") {
		t.Errorf("a comma too many: %v", err)
	}
}

// " b" would be an audience that no token has, and a consumer that does not exist.
func TestListsMayHaveBlanksAfterTheirCommas(t *testing.T) {
	relay, err := config.LoadRelay(relayEnviron("FEEDBOX_CONSUMERS=orders/a, orders/b ,", "FEEDBOX_EVENT_TYPES=A, B"))
	if err != nil || !slices.Equal(relay.Broker.Consumers, []string{"orders/a", "orders/b"}) || !slices.Equal(relay.Event.Types, []string{"A", "B"}) {
		t.Errorf("consumers %q, types %q: %v", relay.Broker.Consumers, relay.Event.Types, err)
	}
	api, err := config.LoadAPI([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_PREFERRED_REGIONS=West Europe, North Europe", "FEEDBOX_ALLOWED_HOSTS=a, b",
		"FEEDBOX_AUTH=entra", "FEEDBOX_AUTH_ISSUER=https://login.example/t/v2.0", "FEEDBOX_AUTH_AUDIENCE=api://a, api://b",
	})
	if err != nil || !slices.Equal(api.Auth.Audiences, []string{"api://a", "api://b"}) || api.Cosmos.PreferredRegions[1] != "North Europe" || api.AllowedHosts[1] != "b" {
		t.Errorf("%+v, %q, %q: %v", api.Auth, api.Cosmos.PreferredRegions, api.AllowedHosts, err)
	}
	push, err := config.LoadPush([]string{"FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL=amqp://127.0.0.1", "FEEDBOX_PUSH_FROM=a", "FEEDBOX_PUSH_TO=https://a.example", "FEEDBOX_PUSH_REFUSED=409, 410"})
	if err != nil || !slices.Equal(push.Receiver.Refused, []int{409, 410}) {
		t.Errorf("%v: %v", push.Receiver.Refused, err)
	}
	if console, err := config.LoadConsole([]string{"FEEDBOX_CONSOLE_METRICS=http://a/metrics, http://b/metrics"}); err != nil || len(console.Metrics) != 2 || console.Metrics[1] != "http://b/metrics" {
		t.Errorf("%v: %v", console.Metrics, err)
	}
}

func TestEventContract(t *testing.T) {
	for environ, says := range map[string]string{
		"":                                      "",
		"FEEDBOX_EVENT_SUBJECT_MEMBER=/type":    "",
		"FEEDBOX_EVENT_SUBJECT_MEMBER=id":       "",
		"FEEDBOX_EVENT_BODY_MEMBER=.":           "",
		"FEEDBOX_EVENT_TYPES=A, B":              "",
		"FEEDBOX_EVENT_TYPES=A,,B":              "names a type that is empty",
		"FEEDBOX_EVENT_TYPE_MEMBER=/kind":       `"/kind" is not the name of a member: write the name of one member, without`,
		"FEEDBOX_EVENT_SUBJECT_MEMBER=a.b":      `"a.b" is not the name of a member: write the name of one member of the body, or of the document behind a slash`,
		"FEEDBOX_EVENT_SEQUENCE_MEMBER=/":       `"/" is not the name`,
		"FEEDBOX_EVENT_KEY_MEMBER=id":           `"id" is the member of FEEDBOX_EVENT_ID_MEMBER, too`,
		"FEEDBOX_EVENT_SEQUENCE_MEMBER=/id":     `"/id" is the member of FEEDBOX_EVENT_ID_MEMBER, too`,
		"FEEDBOX_EVENT_SEQUENCE_MEMBER=/type":   `"/type" is the member of FEEDBOX_EVENT_TYPE_MEMBER, too`,
		"FEEDBOX_EVENT_ORDINAL_MEMBER=/type":    `"/type" is the member of FEEDBOX_EVENT_TYPE_MEMBER, too`,
		"FEEDBOX_EVENT_VERSION_MEMBER=sequence": `"sequence" is the member of FEEDBOX_EVENT_SEQUENCE_MEMBER, too`,
	} {
		_, err := config.LoadRelay(relayEnviron(environ))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", environ, err, says)
		}
	}
}

func TestContainersOfARelay(t *testing.T) {
	relay, err := config.LoadRelay(relayEnviron("FEEDBOX_RELAY_CONTAINERS=orders/orders-leases/orders-parked, bills/b-l/b-p"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range relay.Containers() {
		names = append(names, one.Cosmos.Container+" "+one.Cosmos.Leases+" "+one.Cosmos.Parked)
	}
	if got := strings.Join(names, ", "); got != "data leases parked, orders orders-leases orders-parked, bills b-l b-p" {
		t.Errorf("the relay reads %s", got)
	}
	for name, want := range map[string]string{"": "parked", "data": "parked", "bills": "b-p"} {
		if one, err := relay.Of(name); err != nil || one.Cosmos.Parked != want {
			t.Errorf("container %q: %+v, %v", name, one, err)
		}
	}
	if _, err := relay.Of("other"); err == nil || err.Error() != `the relay reads no container "other"; it reads data, orders, bills` {
		t.Errorf("a container that it does not read: %v", err)
	}
	for value, want := range map[string]string{
		"orders":                      `"orders" is not DATA/LEASES/PARKED`,
		"orders/l/":                   `"orders/l/" is not DATA/LEASES/PARKED`,
		"orders/l/p/x":                `is not DATA/LEASES/PARKED`,
		"orders/l/p,":                 `"" is not DATA/LEASES/PARKED`,
		"data/l/p":                    `the container "data" has two purposes`,
		"orders/leases/p":             `the container "leases" has two purposes`,
		"orders/l/l":                  `the container "l" has two purposes`,
		"orders/l/p,bills/b-leases/p": `the container "p" has two purposes`,
	} {
		if _, err := config.LoadRelay(relayEnviron("FEEDBOX_RELAY_CONTAINERS=" + value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", value, err, want)
		}
	}
	if _, err := config.LoadRelay(relayEnviron("FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=postgres://u:p@localhost/d?sslmode=disable", "FEEDBOX_RELAY_CONTAINERS=orders/l/p")); err == nil || !strings.Contains(err.Error(), "the store postgres has no containers") {
		t.Errorf("with PostgreSQL: %v", err)
	}
}

func TestStart(t *testing.T) {
	for text, want := range map[string]config.Start{
		"beginning":                 {},
		"now":                       {Now: true},
		"2026-01-31T08:00:00Z":      {Time: time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)},
		"2026-01-31T09:00:00+01:00": {Time: time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)},
	} {
		relay, err := config.LoadRelay(relayEnviron("FEEDBOX_RELAY_START=" + text))
		if err != nil || relay.Start.Now != want.Now || !relay.Start.Time.Equal(want.Time) {
			t.Errorf("start %q: got %+v, %v", text, relay.Start, err)
		}
	}
}

// The feed of all versions has no beginning, and an unsent event is lost when the feed has dropped it.
func TestFeedOfAllVersionsBeginsNow(t *testing.T) {
	relay, err := config.LoadRelay(relayEnviron("FEEDBOX_COSMOS_FEED=versions", "FEEDBOX_EVENT_TTL=1m"))
	if err != nil || !relay.Start.Now || relay.EventTTL != 7*24*time.Hour {
		t.Errorf("start %s, TTL %s, error %v", relay.Start, relay.EventTTL, err)
	}
	for environ, want := range map[string]string{
		"FEEDBOX_RELAY_START=beginning":            "FEEDBOX_RELAY_START is beginning, but the feed of all versions begins now",
		"FEEDBOX_COSMOS_FEED_RETENTION=1000h":      "FEEDBOX_COSMOS_FEED_RETENTION",
		"FEEDBOX_STORE=postgres":                   "FEEDBOX_COSMOS_FEED is versions, which only the store cosmos has",
		"FEEDBOX_RELAY_START=2026-01-31T08:00:00Z": "but the feed of all versions begins now",
	} {
		if _, err := config.LoadRelay(relayEnviron("FEEDBOX_COSMOS_FEED=versions", environ)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", environ, err, want)
		}
	}
}

// TestEveryFaultAtOnce gives one of each kind of mistake and expects all of
// them in one error, each with the variable and what to do.
func TestEveryFaultAtOnce(t *testing.T) {
	_, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_KEYS=c2VjcmV0LXZhbHVl",         // unknown, near COSMOS_KEY
		"FEEDBOX_SERVICEBUS_NAMESPACE=contoso",         // contradicts the next
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=hunter2", //
		"FEEDBOX_LEASE_EXPIRY=ten seconds",             // unparsable
		"FEEDBOX_RELAY_MAX_ITEMS=-1",                   // out of range
		"FEEDBOX_RELAY_POLL_MIN=9s",                    // contradicts the default maximum
		"FEEDBOX_RELAY_POLL_BUSY=8s",                   // contradicts the default maximum
		"FEEDBOX_RELAY_START=yesterday",                // unparsable
		"FEEDBOX_OPS_LISTEN=8090",                      // not host:port
		"FEEDBOX_LOG_LEVEL=loud",                       // not one of the words
		"FEEDBOX_INSTANCE=a/b",                         // not a name
	})
	var faults *config.Error
	if !errors.As(err, &faults) {
		t.Fatalf("got %v, want *config.Error", err)
	}
	want := []string{
		"FEEDBOX_COSMOS_ENDPOINT is not set",
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING and FEEDBOX_SERVICEBUS_NAMESPACE are both set: keep",
		`FEEDBOX_LEASE_EXPIRY "ten seconds" is not a duration: write a number with a unit`,
		`FEEDBOX_LOG_LEVEL "loud" is not allowed: allowed are debug, info, warn, error`,
		`FEEDBOX_INSTANCE "a/b" is not a valid name`,
		`FEEDBOX_RELAY_START "yesterday" is neither beginning, now nor a time`,
		"FEEDBOX_RELAY_MAX_ITEMS -1 is out of range: allowed are 0 to 10000",
		"FEEDBOX_RELAY_POLL_MIN is 9s, longer than FEEDBOX_RELAY_POLL_MAX, 5s",
		"FEEDBOX_RELAY_POLL_BUSY is 8s, longer than FEEDBOX_RELAY_POLL_MAX, 5s",
		`FEEDBOX_OPS_LISTEN "8090" is not a listen address: write host:port`,
		"FEEDBOX_COSMOS_KEYS is not a known variable: did you mean FEEDBOX_COSMOS_KEY?",
	}
	if len(faults.Faults) != len(want) {
		t.Errorf("got %d faults, want %d:\n%v", len(faults.Faults), len(want), err)
	}
	for i, fault := range faults.Faults {
		if i < len(want) && !strings.HasPrefix(fault.String(), want[i]) {
			t.Errorf("fault %d is %q, want it to begin with %q", i, fault, want[i])
		}
	}
	if text := err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "c2VjcmV0") {
		t.Errorf("the error shows a secret:\n%s", text)
	}
}

// What Kubernetes adds for services of this name is no setting; what only looks like it
// is a fault as ever.
func TestKubernetesServiceLinksAreIgnored(t *testing.T) {
	_, err := config.LoadRelay(relayEnviron(
		"FEEDBOX_API_SERVICE_HOST=10.0.0.1", "FEEDBOX_API_SERVICE_PORT=80", "FEEDBOX_API_SERVICE_PORT_HTTP=80", "FEEDBOX_API_PORT=tcp://10.0.0.1:80",
		"FEEDBOX_API_PORT_80_TCP=tcp://10.0.0.1:80", "FEEDBOX_API_PORT_80_TCP_PROTO=tcp", "FEEDBOX_API_PORT_80_TCP_PORT=80", "FEEDBOX_API_PORT_80_TCP_ADDR=10.0.0.1",
		"FEEDBOX_SERVICE_HOST=10.0.0.1", "FEEDBOX_PORT=udp://10.0.0.1:80", "FEEDBOX_A_B_PORT_53_UDP_ADDR=10.0.0.1",
	))
	if err != nil {
		t.Errorf("service links are refused: %v", err)
	}
	for _, slip := range []string{"FEEDBOX_API_PORT=8080", "FEEDBOX_OPS_PORT=8090", "FEEDBOX_API_PORT_TCP=1", "FEEDBOX_API_SERVICE=x"} {
		if _, err := config.LoadRelay(relayEnviron(slip)); err == nil || !strings.Contains(err.Error(), "is not a known variable") {
			t.Errorf("%s: %v, want a fault", slip, err)
		}
	}
}

func TestContradictingSettingsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		environ []string
		want    string
	}{
		"no Service Bus": {[]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example"}, "are both missing: set one of them"},
		"http without key": {
			[]string{"FEEDBOX_COSMOS_ENDPOINT=http://127.0.0.1:8081", "FEEDBOX_SERVICEBUS_NAMESPACE=a.example"},
			"over which no credential is sent",
		},
		"endpoint with path": {
			[]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example/dbs/x", "FEEDBOX_SERVICEBUS_NAMESPACE=a.example"},
			"has more than scheme, host and port",
		},
		"slow renewal":       {relayEnviron("FEEDBOX_LEASE_EXPIRY=2s", "FEEDBOX_LEASE_RENEW=1500ms"), "more than half of FEEDBOX_LEASE_EXPIRY"},
		"rare searches":      {relayEnviron("FEEDBOX_LEASE_EXPIRY=2s", "FEEDBOX_LEASE_ACQUIRE=2001ms"), "FEEDBOX_LEASE_ACQUIRE is 2.001s, more than FEEDBOX_LEASE_EXPIRY, 2s"},
		"shared container":   {relayEnviron("FEEDBOX_COSMOS_LEASES=data"), "must be three different containers"},
		"namespace with url": {[]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_SERVICEBUS_NAMESPACE=sb://a.example"}, "is not a host name"},
		"no endpoint in the connection string": {
			[]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_SERVICEBUS_CONNECTION_STRING=SharedAccessKey=x"},
			"has no Endpoint=sb://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.LoadRelay(tc.environ)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

// TestOtherProcessesVariablesAreKnown: one environment may serve both
// processes, and tests keep their own settings beside them.
func TestOtherProcessesVariablesAreKnown(t *testing.T) {
	if _, err := config.LoadAPI(relayEnviron("FEEDBOX_RELAY_START=now", "FEEDBOX_TEST_SEED=7")); err != nil {
		t.Error(err)
	}
}

// TestSecretsAreMasked prints a configuration in every way that a program
// may print it and searches for the secret.
func TestSecretsAreMasked(t *testing.T) {
	const secret = "czNjcjN0LWszeQ=="
	relay, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=" + secret,
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=Endpoint=sb://a.example/;SharedAccessKey=" + secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	if relay.Cosmos.Key.Reveal() != secret {
		t.Fatal("the key was not read")
	}
	var out bytes.Buffer
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q"} {
		fmt.Fprintf(&out, format, *relay)
		fmt.Fprintf(&out, format, relay.Cosmos.Key)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("start", "config", relay, "key", relay.Cosmos.Key, "cosmos", relay.Cosmos)
	slog.New(slog.NewTextHandler(&out, nil)).Info("start", "config", relay, "key", relay.Cosmos.Key, "cosmos", relay.Cosmos)
	if err := json.NewEncoder(&out).Encode(relay); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(&out, relay.Settings())
	if strings.Contains(out.String(), secret) || strings.Contains(out.String(), fmt.Sprintf("%x", secret)) {
		t.Errorf("the secret was printed:\n%s", out.String())
	}
}

func TestSettingsKnowTheirSource(t *testing.T) {
	relay, err := config.LoadRelay(relayEnviron("FEEDBOX_COSMOS_KEY=YWJj"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range append(relay.Settings(), config.OpenTelemetrySettings([]string{"OTEL_EXPORTER_OTLP_HEADERS=api-key=abc", "OTEL_SERVICE_NAME=mine"})...) {
		got[s.Name] = s.Value + " from " + string(s.Source)
	}
	for name, want := range map[string]string{
		"FEEDBOX_COSMOS_ENDPOINT":              "https://contoso.documents.azure.com:443/ from environment",
		"FEEDBOX_COSMOS_KEY":                   "******** from environment",
		"FEEDBOX_COSMOS_DATABASE":              "contacts from default",
		"FEEDBOX_LEASE_RENEW":                  "5s from derived",
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING": " from unset",
		"FEEDBOX_RELAY_START":                  "beginning from default",
		"OTEL_EXPORTER_OTLP_HEADERS":           "******** from environment",
		"OTEL_EXPORTER_OTLP_ENDPOINT":          " from unset",
		"OTEL_SERVICE_NAME":                    "mine from environment",
		"OTEL_TRACES_SAMPLER":                  "parentbased_always_on from default",
		"FEEDBOX_INSTANCE":                     relay.Instance + " from derived",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestVariablesAreComplete checks the struct tags: each variable is
// explained, no default breaks its own limits, and shared ones agree.
func TestVariablesAreComplete(t *testing.T) {
	all := config.Variables()
	if len(all) < 24 {
		t.Fatalf("only %d variables", len(all))
	}
	for _, v := range all {
		if v.Doc == "" || len(v.Processes) == 0 || !strings.HasPrefix(v.Name, config.Prefix) {
			t.Errorf("%+v is not fully described", v)
		}
	}
}

// A wrong configuration is reported as a whole.
func ExampleLoadAPI() {
	_, err := config.LoadAPI([]string{"FEEDBOX_EVENT_TTL=10 days", "FEEDBOX_API_LISTN=:80"})
	fmt.Println(err)
	// Output:
	// wrong configuration, 3 faults:
	//   FEEDBOX_COSMOS_ENDPOINT is not set: URL of the Cosmos DB account, for example https://contoso.documents.azure.com:443/
	//   FEEDBOX_EVENT_TTL "10 days" is not a duration: write a number with a unit, for example 500ms, 30s, 5m or 240h
	//   FEEDBOX_API_LISTN is not a known variable: did you mean FEEDBOX_API_LISTEN?
}

func FuzzLoadRelay(f *testing.F) {
	fuzzseed.Add(f)
	f.Add("FEEDBOX_LEASE_EXPIRY", "20s")
	f.Add("FEEDBOX_RELAY_START", "now")
	f.Add("FEEDBOX_RELAY_MAX_ITEMS", "99999999999999999999")
	f.Add("FEEDBOX_COSMOS_ENDPOINT", "http://[::1")
	f.Add("FEEDBOX_COSMOS_ENDPONT", "x")
	f.Fuzz(func(t *testing.T, name, value string) {
		relay, err := config.LoadRelay(relayEnviron(name + "=" + value))
		var faults *config.Error
		if err != nil && !errors.As(err, &faults) {
			t.Fatalf("unexpected kind of error: %v", err)
		}
		if err == nil && (relay.Lease.Renew <= 0 || relay.Lease.Renew > relay.Lease.Expiry/2 || relay.PollMin > relay.PollMax || relay.MaxItems < 0) {
			t.Fatalf("accepted a contradictory configuration: %+v", relay)
		}
	})
}
