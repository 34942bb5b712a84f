package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	for _, store := range []string{"mysql://db/a", "firestore:///d", "db", "://", "/a"} {
		if err := new(outside).choose(store, "", nil); err == nil || !strings.Contains(err.Error(), "--store: give the URL") {
			t.Errorf("--store %s: %v", store, err)
		}
	}
	for _, broker := range []string{"kafka://mq", "https://sqs.eu-west-1.amazonaws.com/1/standard", "http:///c.fifo", "mq:5672", "://", "/v"} {
		if err := new(outside).choose("", broker, nil); err == nil || !strings.Contains(err.Error(), "--broker: give the URL") {
			t.Errorf("--broker %s: %v", broker, err)
		}
	}
}

// SQS cannot keep a copy of every message: --record is refused before anything starts.
func TestRecordIsRefusedWithSQS(t *testing.T) {
	var out, said bytes.Buffer
	code := run(t.Context(), []string{"--record", "--broker", "http://127.0.0.1:7/1/c.fifo"}, &out, &said, nil)
	if code != exitUsage || !strings.Contains(said.String(), "--record: an SQS queue has one reader") || out.Len() > 0 {
		t.Errorf("%d %s %s", code, out.String(), said.String())
	}
}
