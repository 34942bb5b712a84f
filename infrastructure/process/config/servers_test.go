package config_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/process/config"
)

// TestBrokers: the variables of the broker that is chosen are checked, those of others are not
// looked at.
func TestBrokers(t *testing.T) {
	for _, c := range []struct{ environ, fault string }{
		{"FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL is required"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=http://h", "FEEDBOX_RABBITMQ_URL is not an amqp or amqps URL"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqps://u:p@h:5672/v", ""},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqps://u:p@a:5672/v,amqps://u:p@b:5672/v", ""},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqps://u:p@a:5672/v,b:5672", "FEEDBOX_RABBITMQ_URL is not an amqp or amqps URL"},
		{"FEEDBOX_BROKER=sqs", "FEEDBOX_SQS_QUEUE_URL is required"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/1/plain", "is not the URL of a FIFO queue"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/1/orders.fifo", ""},
		{"FEEDBOX_BROKER=sns", "FEEDBOX_SNS_TOPIC_ARN is required"},
		{"FEEDBOX_BROKER=sns FEEDBOX_SNS_TOPIC_ARN=arn:aws:sns:eu-west-1:1:plain", "is not the ARN of a FIFO topic"},
		{"FEEDBOX_BROKER=sns FEEDBOX_SNS_TOPIC_ARN=arn:aws:sqs:eu-west-1:1:orders.fifo", "is not the ARN of a FIFO topic"},
		{"FEEDBOX_BROKER=sns FEEDBOX_SNS_TOPIC_ARN=arn:aws:sns:eu-west-1:1:orders.fifo", ""},
		{"FEEDBOX_BROKER=kafka", "FEEDBOX_BROKER"},
	} {
		environ := append(strings.Fields(c.environ), "FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=a2V5")
		relay, err := config.LoadRelay(environ)
		switch {
		case c.fault == "" && err != nil, c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: got %v, want %q", c.environ, err, c.fault)
		case c.fault == "" && !relay.HasBroker():
			t.Errorf("%s: no broker", c.environ)
		}
	}
}

// Commands that only read need no broker. A broker that is configured wrongly is reported to
// them too.
func TestWithoutBrokerForgivesAMissingBroker(t *testing.T) {
	for _, c := range []struct{ environ, fault string }{
		{"FEEDBOX_BROKER=servicebus", ""},
		{"FEEDBOX_BROKER=rabbitmq", ""},
		{"FEEDBOX_BROKER=sqs", ""},
		{"FEEDBOX_BROKER=sns", ""},
		{"FEEDBOX_SERVICEBUS_CONNECTION_STRING=junk", "FEEDBOX_SERVICEBUS_CONNECTION_STRING has no Endpoint"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=http://h", "FEEDBOX_RABBITMQ_URL is not an amqp or amqps URL"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://h/plain", "is not the URL of a FIFO queue"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_RELAY_MAX_ITEMS=many", "FEEDBOX_RELAY_MAX_ITEMS"},
	} {
		environ := append(strings.Fields(c.environ), "FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=a2V5")
		relay, err := config.LoadRelay(environ)
		switch err := config.WithoutBroker(err); {
		case c.fault == "" && (err != nil || relay.HasBroker()), c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: got %v, want %q", c.environ, err, c.fault)
		}
	}
}

const secretURL = "https://me:hunter2@sqs.example/1/a.fifo"

// Credentials, names and addresses of people would be readable on the way.
func TestAddressesWithoutTLSAreRefusedUnlessTheirHostIsNamed(t *testing.T) {
	for _, c := range []struct{ environ, variable string }{
		{"FEEDBOX_COSMOS_ENDPOINT=http://emulators:8081", "FEEDBOX_COSMOS_ENDPOINT"},
		{"FEEDBOX_SERVICEBUS_CONNECTION_STRING=Endpoint=sb://emulators;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true", "FEEDBOX_SERVICEBUS_CONNECTION_STRING"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqp://u:p@emulators:5672/v", "FEEDBOX_RABBITMQ_URL"},
		{"FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqps://u:p@127.0.0.1/v,amqp://u:p@emulators:5672/v", "FEEDBOX_RABBITMQ_URL"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=http://emulators/1/a.fifo", "FEEDBOX_SQS_QUEUE_URL"},
		{"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://sqs.example/1/a.fifo FEEDBOX_SQS_ENDPOINT=http://emulators:4566", "FEEDBOX_SQS_ENDPOINT"},
		{"FEEDBOX_BROKER=sns FEEDBOX_SNS_TOPIC_ARN=arn:aws:sns:eu-west-1:1:a.fifo FEEDBOX_SNS_ENDPOINT=http://emulators:4566", "FEEDBOX_SNS_ENDPOINT"},
		{"FEEDBOX_STORE=firestore FEEDBOX_FIRESTORE_PROJECT=p FEEDBOX_FIRESTORE_EMULATOR_HOST=emulators:8080", "FEEDBOX_FIRESTORE_EMULATOR_HOST"},
		{"FEEDBOX_STORE=firestore FEEDBOX_FIRESTORE_PROJECT=p FIRESTORE_EMULATOR_HOST=emulators:8080", "FEEDBOX_FIRESTORE_EMULATOR_HOST"},
		{"FEEDBOX_STORE=postgres FEEDBOX_POSTGRES_URL=postgres://u:p@emulators/a", "FEEDBOX_POSTGRES_URL"}, // the default of PostgreSQL falls back to plain text
		{"FEEDBOX_STORE=postgres FEEDBOX_POSTGRES_URL=postgres://u:p@emulators/a?sslmode=disable", "FEEDBOX_POSTGRES_URL"},
		{"FEEDBOX_STORE=postgres FEEDBOX_POSTGRES_URL=postgres://u:p@emulators/a?sslmode=prefer", "FEEDBOX_POSTGRES_URL"},
		{"FEEDBOX_STORE=postgres FEEDBOX_POSTGRES_URL=postgres://u:p@127.0.0.1/a?host=emulators", "FEEDBOX_POSTGRES_URL"}, // overrides the authority
		{"FEEDBOX_STORE=postgres FEEDBOX_POSTGRES_URL=postgres://u:p@127.0.0.1,emulators/a", "FEEDBOX_POSTGRES_URL"},
		{"OTEL_EXPORTER_OTLP_HEADERS=api-key=abc OTEL_EXPORTER_OTLP_ENDPOINT=http://emulators:4318", "OTEL_EXPORTER_OTLP_ENDPOINT"},
	} {
		environ := append([]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=a2V5"}, strings.Fields(c.environ)...)
		if !strings.Contains(c.environ, "FEEDBOX_BROKER") && !strings.Contains(c.environ, "SERVICEBUS") {
			environ = append(environ, "FEEDBOX_SERVICEBUS_NAMESPACE=a.example")
		}
		_, err := config.LoadRelay(environ)
		if err == nil || !strings.Contains(err.Error(), c.variable+" reaches emulators without TLS") || !strings.Contains(err.Error(), "FEEDBOX_PLAINTEXT_HOSTS") {
			t.Errorf("%s: got %v", c.environ, err)
		}
		for _, allowed := range []string{"other, emulators", "*"} {
			if _, err := config.LoadRelay(append(environ, "FEEDBOX_PLAINTEXT_HOSTS="+allowed)); err != nil {
				t.Errorf("%s, allowed by %s: %v", c.environ, allowed, err)
			}
		}
		local := strings.Fields(strings.ReplaceAll(strings.Join(environ, "\n"), "emulators", "127.0.0.2"))
		if _, err := config.LoadRelay(local); err != nil {
			t.Errorf("%s on loopback: %v", c.environ, err)
		}
	}
	for environ, isRefused := range map[string]bool{
		"FEEDBOX_CONSOLE_MANAGEMENT=http://emulators:5300":                true,
		"FEEDBOX_CONSOLE_METRICS=http://me:pw@relay:8090/metrics":         true,
		"FEEDBOX_CONSOLE_METRICS=http://relay:8090/metrics":               false, // has neither credentials nor personal data
		"FEEDBOX_CONSOLE_METRICS=https://me:pw@relay/metrics":             false,
		"FEEDBOX_TRACE_URL=http://jaeger:16686/trace/{traceId}":           false, // a link, which the console does not open
		"FEEDBOX_CONSOLE_METRICS=http://me:pw@[::1]:8090/metrics":         false,
		"FEEDBOX_CONSOLE_METRICS=http://me:pw@localhost:8090/metrics":     false,
		"FEEDBOX_CONSOLE_METRICS=http://me:pw@localhost.evil:8090/metric": true,
	} {
		_, err := config.LoadConsole([]string{environ})
		if (err != nil) != isRefused || isRefused && !strings.Contains(err.Error(), "without TLS") {
			t.Errorf("%s: %v", environ, err)
		}
	}
}

// TLS without the name of the server keeps out listeners, but not a server in between.
func TestPostgresWithoutVerifyFullIsReported(t *testing.T) {
	for query, isReported := range map[string]bool{"?sslmode=require": true, "?sslmode=verify-ca": true, "?sslmode=verify-full": false} {
		c, err := config.LoadAPI([]string{"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=postgres://u:p@db.example/a" + query})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		warnings := fmt.Sprint(c.Warnings())
		if strings.Contains(warnings, "FEEDBOX_POSTGRES_URL") != isReported {
			t.Errorf("%s: %s", query, warnings)
		}
	}
	c, err := config.LoadAPI([]string{"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=postgres:///a?host=/run/postgresql"})
	if err != nil || len(c.Warnings()) > 0 {
		t.Errorf("a Unix socket: %v %v", c.Warnings(), err)
	}
}

// Other people read logs and terminals. The AWS SDK and the broker's clients have credentials of their own,
// and a link is shown to every reader, so most addresses must not have one.
func TestCredentialsInAddressesAreNotPrinted(t *testing.T) {
	for _, environ := range []string{
		"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=" + secretURL,
		"FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://sqs.example/1/a.fifo?sig=hunter2",
		"FEEDBOX_BROKER=sqs FEEDBOX_SQS_ENDPOINT=https://me:hunter2@sqs.example FEEDBOX_SQS_QUEUE_URL=https://sqs.example/1/a.fifo",
		"FEEDBOX_SQS_ENDPOINT=https://hunter2@sqs.example", "FEEDBOX_SNS_ENDPOINT=https://hunter2@sqs.example", "FEEDBOX_COSMOS_ENDPOINT=https://me:hunter2@a.example",
		"FEEDBOX_API_PUBLIC_URL=https://me:hunter2@a.example", "FEEDBOX_AUTH_ISSUER=https://me:hunter2@login.example FEEDBOX_AUTH=entra FEEDBOX_AUTH_AUDIENCE=a",
		"FEEDBOX_TRACE_URL=https://me:hunter2@a.example/{traceId}", "FEEDBOX_CONSOLE_MANAGEMENT=https://me:hunter2@a.example",
		"FEEDBOX_CONSOLE_METRICS=https://me:hunter2@relay/metrics", "FEEDBOX_CONSOLE_METRICS=ftp://me:hun?ter2@relay/hunter2@x", "FEEDBOX_CONSOLE_METRICS=https://relay/metrics?token=hunter2",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://me:hunter2@collector", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://me:hunter2@collector",
	} {
		environ := append([]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=a2V5"}, strings.Fields(environ)...)
		var out bytes.Buffer
		api, apiErr := config.LoadAPI(environ)
		relay, relayErr := config.LoadRelay(environ)
		console, consoleErr := config.LoadConsole(environ)
		for _, format := range []string{"%v", "%+v", "%#v", "%q"} {
			fmt.Fprintf(&out, format+format+format, api, relay, console)
		}
		fmt.Fprint(&out, apiErr, relayErr, consoleErr, api.Settings(), relay.Settings(), console.Settings(), config.OpenTelemetrySettings(environ))
		slog.New(slog.NewJSONHandler(&out, nil)).Info("start", "api", api, "relay", relay, "console", console, "queue", relay.SQS)
		if strings.Contains(out.String(), "ter2") {
			t.Errorf("%s is printed: …%s", environ, before(out.String(), "ter2"))
		}
	}
	for _, environ := range []string{"FEEDBOX_SQS_QUEUE_URL=" + secretURL, "FEEDBOX_TRACE_URL=https://me:hunter2@a.example/{traceId}", "FEEDBOX_API_PUBLIC_URL=https://me:hunter2@a.example"} {
		_, api := config.LoadAPI([]string{environ})
		_, relay := config.LoadRelay([]string{environ, "FEEDBOX_BROKER=sqs"})
		_, console := config.LoadConsole([]string{environ})
		if all := fmt.Sprint(api, relay, console); !strings.Contains(all, "holds a user or password") {
			t.Errorf("%s is accepted: %s", environ, all)
		}
	}
}

// The arguments of a process are visible to all users of a machine, and its environment to some tools.
func TestSecretsAreReadFromFiles(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("url", "postgres://u:p@127.0.0.1/a\n")
	c, err := config.LoadAPI([]string{"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL_FILE=" + good, "FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS_FILE=" + file("keys", "shop:write:"+hash+"\r\n")})
	if err != nil || c.Postgres.URL.Reveal() != "postgres://u:p@127.0.0.1/a" || len(c.APIKeys.List()) != 1 {
		t.Fatalf("%q, %v", c.Postgres.URL.Reveal(), err)
	}
	if shown := fmt.Sprint(c.Settings()); !strings.Contains(shown, "{FEEDBOX_POSTGRES_URL ******** file") {
		t.Errorf("the source is not shown: %s", shown)
	}
	for _, wrong := range []struct{ environ, fault string }{
		{"FEEDBOX_POSTGRES_URL_FILE=" + filepath.Join(folder, "missing"), "FEEDBOX_POSTGRES_URL_FILE cannot be read"},
		{"FEEDBOX_POSTGRES_URL_FILE=" + folder, "FEEDBOX_POSTGRES_URL_FILE cannot be read"},
		{"FEEDBOX_POSTGRES_URL_FILE=" + file("empty", "\n"), "FEEDBOX_POSTGRES_URL_FILE names an empty file"},
		{"FEEDBOX_POSTGRES_URL_FILE=" + file("large", strings.Repeat("x", 70_000)), "FEEDBOX_POSTGRES_URL_FILE names a file of more than 64 KB"},
		{"FEEDBOX_POSTGRES_URL_FILE=" + good + " FEEDBOX_POSTGRES_URL=postgres://u:p@127.0.0.1/b", "FEEDBOX_POSTGRES_URL_FILE and FEEDBOX_POSTGRES_URL are both set"},
		{"FEEDBOX_POSTGRES_SCHEMA_FILE=" + good, "FEEDBOX_POSTGRES_SCHEMA_FILE is not a known variable"},
	} {
		_, err := config.LoadAPI(append(strings.Fields(wrong.environ), "FEEDBOX_STORE=postgres"))
		if err == nil || !strings.Contains(err.Error(), wrong.fault) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v, want %q", wrong.environ, err, wrong.fault)
		}
	}
	if _, err := config.LoadAPI([]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_RABBITMQ_URL_FILE=/missing"}); err != nil {
		t.Errorf("the file of another process: %v", err)
	}
}

// The output of the command and the content of the file are never part of an error.
func TestPasswordThatCannotBeReadIsReportedWithItsSource(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		p    config.Postgres
		want string // the password, or part of the error
	}{
		{config.Postgres{PasswordFile: file("good", "hunter 2\r\n")}, "hunter 2"},
		{config.Postgres{PasswordFile: folder + "/none"}, "FEEDBOX_POSTGRES_PASSWORD_FILE: open"},
		{config.Postgres{PasswordFile: file("empty", "\n")}, "FEEDBOX_POSTGRES_PASSWORD_FILE: 1 bytes are not a password"},
		{config.Postgres{PasswordFile: file("large", strings.Repeat("hunter2", 10_000))}, "are not a password"},
		{config.Postgres{PasswordCommand: "printf hunter3"}, "hunter3"},
		{config.Postgres{PasswordCommand: "sh " + file("fails", "echo hunter2; echo expired login >&2; exit 3")}, `FEEDBOX_POSTGRES_PASSWORD_COMMAND: exit status 3: "expired login"`},
		{config.Postgres{PasswordCommand: "/nosuch"}, "FEEDBOX_POSTGRES_PASSWORD_COMMAND: fork/exec /nosuch"},
		{config.Postgres{PasswordCommand: " "}, "FEEDBOX_POSTGRES_PASSWORD_COMMAND names no program"},
	} {
		got, err := c.p.Password(t.Context())
		if err == nil && got != c.want || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || got != "") {
			t.Errorf("%+v: %q, %v; want %s", c.p, got, err, c.want)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (config.Postgres{PasswordCommand: "sleep 600"}).Password(canceled); err == nil {
		t.Error("a command outlives its context")
	}
	_, err := config.LoadAPI([]string{"FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=postgres://u@127.0.0.1/a", "FEEDBOX_POSTGRES_IDENTITY=aws", "FEEDBOX_POSTGRES_PASSWORD_FILE=/f"})
	if err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("two sources: %v", err)
	}
}

// before returns the end of text before a mark.
func before(text, mark string) string {
	at := strings.Index(text, mark)
	return text[max(0, at-200):at]
}

// policiesOf loads the policies of a file with that content.
func policiesOf(t *testing.T, content string, more ...string) (*config.Push, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.LoadPush(append(more, "FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL=amqp://127.0.0.1/", "FEEDBOX_PUSH_FROM=billing", "FEEDBOX_PUSH_TO=https://shop.example/events", "FEEDBOX_PUSH_POLICIES="+file))
}

func TestPoliciesAreReadByAction(t *testing.T) {
	got, err := policiesOf(t, `{
		"OrderPaid": {"attempts": 5, "backoff": "2s", "backoffMax": "1m", "timeout": "10m", "refused": [400, 422], "then": "dead-letter"},
		"PageViewed": {"attempts": 0, "refused": [], "then": "drop"},
		"*": {"then": "park"}
	}`, "FEEDBOX_PUSH_PARK=billing", "FEEDBOX_COSMOS_ENDPOINT=https://account.example/")
	want := map[string]config.Policy{
		"OrderPaid":  {Attempts: 5, Backoff: 2 * time.Second, BackoffMax: time.Minute, Timeout: 10 * time.Minute, Refused: []int{400, 422}, Then: "dead-letter"},
		"PageViewed": {Attempts: -1, Refused: []int{}, Then: "drop"},
		"":           {Then: "park"},
	}
	if err != nil || !reflect.DeepEqual(got.ByAction, want) {
		t.Errorf("%+v, %v; want %+v", got.ByAction, err, want)
	}
}

func TestPoliciesOfTheDocumentAreValid(t *testing.T) {
	document, err := os.ReadFile("../../../cmd/feedbox/PUSH.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(document), "\n```json\n")
	example, _, _ := strings.Cut(after, "\n```\n")
	got, err := policiesOf(t, example, "FEEDBOX_PUSH_PARK=billing", "FEEDBOX_COSMOS_ENDPOINT=https://account.example/")
	if !found || err != nil || len(got.ByAction) != 3 {
		t.Errorf("%s\n%+v, %v", example, got.ByAction, err)
	}
}

// Every fault of a policy names the file, the action, the member and what is allowed.
func TestWrongPoliciesAreReported(t *testing.T) {
	for content, want := range map[string]string{
		"":                                `which is not JSON in line 1: unexpected end of JSON input: write for example {"OrderPaid"`,
		"{\n\n\"A\": {\"attempts\": 1,}}": `which is not JSON in line 3: invalid character '}'`,
		`{} {}`:                           `which is not JSON in line 1: invalid character '{' after top-level value`,
		`[]`:                              `which is not a JSON object: write for example`,
		`null`:                            `which is not a JSON object`,
		`{"A": null}`:                     `whose policy of "A" is not a JSON object`,
		`{"A": 3}`:                        `whose policy of "A" is not a JSON object`,
		`{"": {}}`:                        `whose policy of "" has no action: write "*" for all other actions`,
		`{"A": {}, "B": {}, "A": {}}`:     `whose policy of "A" is given twice: keep the one that is meant`,
		`{"A": {"retries": 3}}`:           `whose policy of "A" has the unknown member "retries": allowed are attempts, backoff, backoffMax, timeout, refused and then`,
		`{"A": {"Attempts": 3}}`:          `unknown member "Attempts"`,
		`{"A": {"timeout": "1s", "timeout": "2s"}}`:                       `whose policy of "A" has timeout twice`,
		`{"A": {"attempts": "3"}}`:                                        `has attempts "3": write a whole number from 0, which is no limit, to 1000000`,
		`{"A": {"attempts": null}}`:                                       `has attempts null`,
		`{"A": {"attempts": 1.5}}`:                                        `has attempts 1.5`,
		`{"A": {"attempts": -1}}`:                                         `has attempts -1`,
		`{"A": {"attempts": 1000001}}`:                                    `has attempts 1000001`,
		`{"A": {"backoff": 5}}`:                                           `has backoff 5: write a duration from 100ms to 1h0m0s, for example "5s"`,
		`{"A": {"backoff": "99ms"}}`:                                      `has backoff "99ms"`,
		`{"A": {"backoff": "1s", "backoffMax": "61m"}}`:                   `has backoffMax "61m"`,
		`{"A": {"backoff": "5s", "backoffMax": "4s"}}`:                    `has backoffMax 4s below the first backoff, 5s: raise backoffMax, or lower backoff`,
		`{"A": {"backoffMax": "400ms"}}`:                                  `has backoffMax 400ms below the first backoff, 500ms`,
		`{"A": {"timeout": "11m"}}`:                                       `has timeout "11m": write a duration from 100ms to 10m0s`,
		`{"A": {"timeout": "soon"}}`:                                      `has timeout "soon"`,
		`{"A": {"refused": 422}}`:                                         `has refused 422: write a list of statuses from 400 to 499, for example [400, 422]`,
		`{"A": {"refused": [422, 500]}}`:                                  `has refused [422, 500]`,
		`{"A": {"refused": [null]}}`:                                      `has refused [null]`,
		`{"A": {"then": "ignore"}}`:                                       `has then "ignore": write "park", "dead-letter" or "drop"`,
		`{"A": {"then": "park"}}`:                                         `parks, but FEEDBOX_PUSH_PARK is not set: set it, or write dead-letter or drop`,
		`{"A": {"refused": [` + strings.Repeat("400,", 20_000) + `400]}}`: `which cannot be read: it has more than 64 KB`,
	} {
		_, err := policiesOf(t, content)
		wrong, ok := errors.AsType[*config.Error](err)
		if !ok || len(wrong.Faults) != 1 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "FEEDBOX_PUSH_POLICIES names "+os.TempDir()) {
			t.Errorf("%.80s: %v, want one fault: %s", content, err, want)
		}
	}
	if _, err := policiesOf(t, `{"A": {"timeout": 1, "then": 2}, "B": {"attempts": true}}`); strings.Count(fmt.Sprint(err), "FEEDBOX_PUSH_POLICIES") != 3 {
		t.Errorf("%v, want all three faults", err)
	}
	_, err := config.LoadPush([]string{"FEEDBOX_PUSH_POLICIES=" + filepath.Join(t.TempDir(), "none.json")})
	if !strings.Contains(fmt.Sprint(err), "none.json, which cannot be read") {
		t.Errorf("a missing file: %v", err)
	}
}

// Push and feed refuse a receiver that would get events in plain text or unsigned, and a wrong source.
func TestWrongReceiversAreRefused(t *testing.T) {
	broker := []string{"FEEDBOX_BROKER=rabbitmq", "FEEDBOX_RABBITMQ_URL=amqp://127.0.0.1/", "FEEDBOX_PUSH_FROM=billing", "FEEDBOX_PUSH_TO=https://shop.example/events"}
	queue := []string{"FEEDBOX_BROKER=sqs", "FEEDBOX_PUSH_TO=http://127.0.0.1:1/", "FEEDBOX_SQS_QUEUE_URL=https://sqs.example/1/orders.fifo"}
	store := []string{"FEEDBOX_COSMOS_ENDPOINT=https://account.example/", "FEEDBOX_PUSH_TO=https://shop.example/events"}
	push := func(environ []string) error { _, err := config.LoadPush(environ); return err }
	feed := func(environ []string) error { _, err := config.LoadFeed(environ); return err }
	for _, c := range []struct {
		load    func([]string) error
		environ []string
		more    string
		want    string // the variable of the fault; "" = none
	}{
		{push, broker, "", ""},
		{push, queue, "", ""},
		{push, queue, "FEEDBOX_PUSH_FROM=https://sqs.example/1/other.fifo", ""},
		{push, queue, "FEEDBOX_PUSH_FROM=http://sqs.example/1/other.fifo", "FEEDBOX_PUSH_FROM"},
		{push, queue, "FEEDBOX_PUSH_FROM=orders", "FEEDBOX_PUSH_FROM"},
		{push, broker, "FEEDBOX_PUSH_FROM=", "FEEDBOX_PUSH_FROM"},
		{push, broker, "FEEDBOX_RABBITMQ_URL=", "FEEDBOX_RABBITMQ_URL"},
		{push, broker, "FEEDBOX_PUSH_TO=", "FEEDBOX_PUSH_TO"},
		{push, broker, "FEEDBOX_PUSH_TO=shop.example", "FEEDBOX_PUSH_TO"},
		{push, broker, "FEEDBOX_PUSH_TO=http://shop.example/", "FEEDBOX_PUSH_TO"},
		{push, broker, "FEEDBOX_PUSH_TO=https://user:password@shop.example/", "FEEDBOX_PUSH_TO"},
		{push, broker, "FEEDBOX_PUSH_MODE=xml", "FEEDBOX_PUSH_MODE"},
		{push, broker, "FEEDBOX_PUSH_REFUSED=409,500", "FEEDBOX_PUSH_REFUSED"},
		{push, broker, "FEEDBOX_PUSH_REFUSED=gone", "FEEDBOX_PUSH_REFUSED"},
		{push, broker, "FEEDBOX_PUSH_TIMEOUT=0s", "FEEDBOX_PUSH_TIMEOUT"},
		{push, append(broker, "FEEDBOX_PUSH_MODE=binary"), "FEEDBOX_PUSH_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "FEEDBOX_PUSH_MODE"},
		{push, append(broker, "FEEDBOX_PLAINTEXT_HOSTS=shop.example"), "FEEDBOX_PUSH_TO=http://shop.example/", ""},
		{push, append(broker, "FEEDBOX_STORE=postgres", "FEEDBOX_POSTGRES_URL=postgres://127.0.0.1/db"), "FEEDBOX_PUSH_PARK=billing", ""},
		{push, broker, "FEEDBOX_PUSH_PARK=billing", "FEEDBOX_COSMOS_ENDPOINT"},
		{push, append(broker, "FEEDBOX_STORE=firestore"), "FEEDBOX_PUSH_PARK=billing", "FEEDBOX_FIRESTORE_PROJECT"},
		{push, append(broker, "FEEDBOX_COSMOS_ENDPOINT=https://account.example/"), "FEEDBOX_PUSH_PARK=a/b", "FEEDBOX_PUSH_PARK"},
		{feed, store, "", ""},
		{feed, store, "FEEDBOX_COSMOS_LEASES=data", "FEEDBOX_COSMOS_LEASES"},
		{feed, store, "FEEDBOX_PUSH_TO=http://shop.example/", "FEEDBOX_PUSH_TO"},
		{feed, store, "FEEDBOX_FEED_REFUSED=drop", "FEEDBOX_FEED_REFUSED"},
		{feed, store, "FEEDBOX_LEASE_RENEW=19s", "FEEDBOX_LEASE_RENEW"},
		{feed, store, "FEEDBOX_LEASE_ACQUIRE=21s", "FEEDBOX_LEASE_ACQUIRE"},
		{feed, store, "FEEDBOX_LEASE_ACQUIRE=20s", ""},
	} {
		err := c.load(append(slices.Clone(c.environ), c.more))
		if wrong, ok := errors.AsType[*config.Error](err); c.want == "" && err != nil || c.want != "" && (!ok || len(wrong.Faults) != 1 || wrong.Faults[0].Variable != c.want) {
			t.Errorf("%s: %v, want a fault of %q", c.more, err, c.want)
		}
		if strings.Contains(fmt.Sprint(err), "password@shop") {
			t.Errorf("the password is shown: %v", err)
		}
	}
}

func TestShardsAreChecked(t *testing.T) {
	for text, valid := range map[string]bool{
		"events-0": true, "events-0, events-1@b.example ,events-1": true, "": true,
		"a,a": false, "a,,b": false, "a@": false, "@b.example": false, "a@sb://b.example": false, "a@b@c": false, "a,a@a.example": false,
	} {
		c, err := config.LoadRelay([]string{"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_SERVICEBUS_NAMESPACE=a.example", "FEEDBOX_SERVICEBUS_SHARDS=" + text})
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "FEEDBOX_SERVICEBUS_SHARDS") {
			t.Errorf("%q: %v", text, err)
		}
		if twice := text == "a,a" || text == "a,a@a.example"; twice != (err != nil && strings.Contains(err.Error(), " twice")) {
			t.Errorf("%q: %v", text, err)
		}
		if valid && strings.Join(c.Shards(), ",") != strings.ReplaceAll(text, " ", "") {
			t.Errorf("%q is read as %v", text, c.Shards())
		}
	}
	c := config.ServiceBus{Namespace: "a.example", Topic: "all", Topics: []string{"X=audit"}, Shards: []string{"e0", "e1@b.example"}}
	if own, other := c.In(""), c.In("b.example"); own.Topic != "" || !slices.Equal(own.Shards, []string{"e0"}) || own.Namespace != "a.example" || len(own.Topics) != 1 ||
		other.Topic != "" || !slices.Equal(other.Shards, []string{"e1"}) || other.Namespace != "b.example" || other.Topics != nil {
		t.Errorf("the namespaces: %+v, %+v", own, other)
	}
	if c.Shards = nil; c.In("").Topic != "all" {
		t.Error("without shards the topic is not examined")
	}
}
