package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"feedbox/infrastructure/process/console"
)

// The servers of --store and --broker are in the FEEDBOX_ variables, also when read from the
// ready file, and in the banner without a password.
func TestServersOfFlagsAreUsed(t *testing.T) {
	emulator := []string{"FIRESTORE_EMULATOR_HOST=127.0.0.1:9"}
	for _, c := range []struct {
		store, broker   string
		environ         []string
		variables, rows string // parts of the output
	}{
		{"", "", nil, "FEEDBOX_STORE=cosmos FEEDBOX_BROKER=servicebus FEEDBOX_COSMOS_ENDPOINT=", "Cosmos DB emulator"},
		{"postgres://me:secret@db:5432/a", "amqp://me:secret@mq:5672/v", nil, "FEEDBOX_STORE=postgres FEEDBOX_POSTGRES_URL=postgres://me:secret@db:5432/a FEEDBOX_POSTGRES_MIGRATE=true FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqp://me:secret@mq:5672/v FEEDBOX_RABBITMQ_EXCHANGE=events FEEDBOX_PLAINTEXT_HOSTS=*", "postgres://me:xxxxx@db:5432/a"},
		{"postgresql://db/a", "amqps://mq", nil, "FEEDBOX_STORE=postgres FEEDBOX_POSTGRES_URL=postgresql://db/a FEEDBOX_POSTGRES_MIGRATE=true FEEDBOX_BROKER=rabbitmq FEEDBOX_RABBITMQ_URL=amqps://mq", "amqps://mq"},
		{"firestore://p/d", "", emulator, "FEEDBOX_STORE=firestore FEEDBOX_FIRESTORE_PROJECT=p FEEDBOX_FIRESTORE_DATABASE=d FEEDBOX_FIRESTORE_EMULATOR_HOST=127.0.0.1:9 FEEDBOX_BROKER=servicebus", "p/d (emulator at 127.0.0.1:9)"},
		{"firestore://p", "https://sqs.eu-west-1.amazonaws.com/1/c.fifo", nil, "FEEDBOX_FIRESTORE_DATABASE= FEEDBOX_FIRESTORE_EMULATOR_HOST= FEEDBOX_BROKER=sqs FEEDBOX_SQS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/1/c.fifo FEEDBOX_SQS_ENDPOINT= FEEDBOX_SQS_REGION=eu-west-1", "amazonaws.com/1/c.fifo"},
		{"", "arn:aws:sns:eu-west-1:1:c.fifo", nil, "FEEDBOX_BROKER=sns FEEDBOX_SNS_TOPIC_ARN=arn:aws:sns:eu-west-1:1:c.fifo", "arn:aws:sns:eu-west-1:1:c.fifo"},
		{"", "http://127.0.0.1:7/1/c.fifo", nil, "FEEDBOX_SQS_ENDPOINT=http://127.0.0.1:7 FEEDBOX_SQS_REGION=", "Cosmos DB emulator"},
	} {
		e := endpoints{Topic: "events"}
		if err := e.choose(c.store, c.broker, c.environ); err != nil {
			t.Errorf("%s %s: %v", c.store, c.broker, err)
			continue
		}
		if got := strings.Join(e.environ(), " "); !strings.Contains(got, c.variables) {
			t.Errorf("%s %s:\n%s, want\n%s", c.store, c.broker, got, c.variables)
		}
		file := filepath.Join(t.TempDir(), "ready.json")
		if err := e.write(file); err != nil {
			t.Fatal(err)
		}
		if again, err := readEndpoints(file); err != nil || !slices.Equal(again.environ(), e.environ()) {
			t.Errorf("%s %s: from the ready file %v, %v", c.store, c.broker, again, err)
		}
		var banner bytes.Buffer
		e.print(&banner, console.Style{}, &options{})
		if !strings.Contains(banner.String(), c.rows) || strings.Contains(banner.String(), "secret") {
			t.Errorf("%s %s:\n%s, want %s", c.store, c.broker, banner.String(), c.rows)
		}
	}
	if got := (&rabbit{}).consumer(&endpoints{Topic: "contacts", Subscription: "all"}); got != "contacts.all:4" {
		t.Errorf("FEEDBOX_CONSUMERS of RabbitMQ is %q", got)
	}
}

// Other users of the machine can see the arguments of a process.
func TestServerURLsAreReadFromFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(file, []byte("postgres://me:secret@db/a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := endpoints{}
	if err := e.choose("@"+file, "", nil); err != nil || !slices.Contains(e.environ(), "FEEDBOX_POSTGRES_URL=postgres://me:secret@db/a") {
		t.Errorf("%v, %v", e.environ(), err)
	}
	if err := e.choose("", "@"+file+".missing", nil); err == nil || !strings.Contains(err.Error(), "--broker: open ") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestIncompleteServerURLsAreRefused(t *testing.T) {
	for _, store := range []string{"mysql://db/a", "firestore:///d", "db", "://", "/a", "postgres://", "postgres://db", "postgres:///a"} {
		if err := new(outside).choose(store, "", nil); err == nil || !strings.Contains(err.Error(), "--store: give the URL") {
			t.Errorf("--store %s: %v", store, err)
		}
	}
	for _, broker := range []string{"amqp://", "amqps:///v", "kafka://mq", "https://sqs.eu-west-1.amazonaws.com/1/standard", "http:///c.fifo", "mq:5672", "://", "/v", "arn:aws:sns:eu-west-1:1:standard", "arn:aws:sqs:eu-west-1:1:c.fifo"} {
		if err := new(outside).choose("", broker, nil); err == nil || !strings.Contains(err.Error(), "--broker: give the URL") {
			t.Errorf("--broker %s: %v", broker, err)
		}
	}
}

// SQS cannot keep a copy of every message: --record is refused before anything starts.
func TestRecordIsRefusedWithSQS(t *testing.T) {
	for broker, want := range map[string]string{"http://127.0.0.1:7/1/c.fifo": "an SQS queue has one reader", "arn:aws:sns:eu-west-1:1:c.fifo": "SNS topic has one reader"} {
		var out, said bytes.Buffer
		code := run(t.Context(), []string{"--record", "--broker", broker}, &out, &said, nil)
		if code != exitUsage || !strings.Contains(said.String(), "--record: ") || !strings.Contains(said.String(), want) || out.Len() > 0 {
			t.Errorf("%d %s %s", code, out.String(), said.String())
		}
	}
}

// The commands of the banner can be copied: each is complete, on its own lines, and valid
// for a shell.
func TestBannerCommandsCanBeCopied(t *testing.T) {
	e := endpoints{
		API: "http://127.0.0.1:1", Ops: "http://127.0.0.1:2", Page: "http://127.0.0.1:6", CosmosEndpoint: "http://127.0.0.1:3/", ServiceBusAdmin: "http://127.0.0.1:4",
		ServiceBusConnectionString: "Endpoint=sb://127.0.0.1:5;SharedAccessKeyName=n;SharedAccessKey=k",
	}
	if err := e.choose("", "", nil); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                                   `feedbox-dev env)"`,
		"--data-dir it's":                    `feedbox-dev env --data-dir 'it'\''s')"`,
		"--ephemeral":                        "",
		"--ephemeral --ready-file here.json": `feedbox-dev env --ready-file 'here.json')"`,
	} {
		opts := &options{}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		opts.register(flags, true)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		e.print(&out, console.Style{}, opts)
		var commands strings.Builder
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "curl ") || strings.HasPrefix(line, "  -d") || strings.HasPrefix(line, "eval ") {
				commands.WriteString(line)
			}
		}
		if said, err := exec.Command("sh", "-nc", commands.String()).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", args, err, said, commands.String())
		}
		if want == "" && strings.Contains(out.String(), "eval") || !strings.Contains(strings.ReplaceAll(out.String(), "feedbox-dev.test", "feedbox-dev"), want) {
			t.Errorf("%q: %s\nwant %s", args, out.String(), want)
		}
		if strings.Contains(out.String(), "...") || !strings.Contains(out.String(), e.API+"/docs") {
			t.Errorf("a part is missing:\n%s", out.String())
		}
	}
	for _, one := range []struct {
		play       bool
		want, lack string
	}{{false, "feedbox-dev --play\n", "/play\n"}, {true, e.Page + "/play\n", "appears below"}} {
		var out bytes.Buffer
		e.print(&out, console.Style{}, &options{ephemeral: true, play: playing{on: one.play}})
		if text := strings.ReplaceAll(out.String(), "feedbox-dev.test", "feedbox-dev"); !strings.Contains(text, one.want) || strings.Contains(text, one.lack) {
			t.Errorf("the banner must contain %q, not %q:\n%s", one.want, one.lack, out.String())
		}
	}
	for path, want := range map[string]string{
		"bin/feedbox-dev":                             "bin/feedbox-dev",
		"/tmp/go-build12/b001/exe/feedbox-dev":        "go run ./cmd/feedbox-dev",
		"/home/x/.cache/go/3c/3cd0a1f2-d/feedbox-dev": "go run ./cmd/feedbox-dev",
	} {
		if got := program(path); got != want {
			t.Errorf("the command of %s is %q, want %q", path, got, want)
		}
	}
}
