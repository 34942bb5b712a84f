package arch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// generic are packages that serve aggregates of any kind. Contacts are one of them, and
// nothing outside tests and examples says so.
var generic = []string{
	"domain/aggregate", "domain/event", "domain/fault",
	"application/command", "application/query", "application/relay", "application/mediator", "changefeed", "changefeed/cosmosfeed",
	"infrastructure/cosmos", "infrastructure/document", "infrastructure/rows", "infrastructure/rows/parked", "infrastructure/postgres", "infrastructure/firestore", "infrastructure/internal/jsontext", "infrastructure/cosmos/internal/store", "infrastructure/cosmos/parked",
	"infrastructure/monitor", "infrastructure/page", "infrastructure/verify", "infrastructure/consumer", "infrastructure/consumer/cosmosinbox", "infrastructure/consumer/postgresinbox", "infrastructure/consumer/firestoreinbox",
	"infrastructure/internal/handling", "infrastructure/internal/sending", "infrastructure/internal/sharing", "infrastructure/servicebus/subscriber", "infrastructure/rabbitmq", "infrastructure/sqs",
	"infrastructure/servicebus", "infrastructure/servicebus/internal/wire", "infrastructure/relayfeed", "infrastructure/relayservice", "infrastructure/relayservice/azure",
	"infrastructure/httpapi", "infrastructure/httpapi/auth", "infrastructure/httpapi/internal/strictjson",
}

func TestGenericPackagesKnowNoContacts(t *testing.T) {
	t.Parallel()
	for _, path := range generic {
		files, err := filepath.Glob(filepath.Join("../..", path, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", path, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") && bytes.Contains(bytes.ToLower(text), []byte("contact")) {
				t.Errorf("%s/%s speaks of contacts", path, filepath.Base(file))
			}
		}
	}
}
