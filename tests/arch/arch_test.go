// Package arch holds the layering rules of ARCHITECTURE.md as a test, so that
// plain `go test ./...` catches a breach; .golangci.yml says the same to editors.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "feedbox"

// layer says what the packages under path may import, besides themselves.
type layer struct {
	path   string   // import path prefix below the module
	except []string // sub-trees with rules of their own
	allow  []string // import path prefixes; "std" is the standard library
	deny   []string // exact import paths refused even if allowed above
}

// kit is what a broker's consumer kit is made of.
var kit = []string{"feedbox/infrastructure/consumer", "feedbox/infrastructure/consumer/handling", "feedbox/infrastructure/broker/internal/publish", "feedbox/infrastructure/broker/internal/shared"}

var layers = []layer{
	{
		path:  "domain",
		allow: []string{"std", "github.com/google/uuid"},
		deny:  []string{"net", "net/http", "os", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand"},
	},
	{
		path:  "application",
		allow: []string{"std", "github.com/google/uuid", "feedbox/domain"},
		deny:  []string{"net", "net/http", "os"},
	},
	{
		path:   "changefeed",
		except: []string{"changefeed/cosmosfeed"},
		allow:  []string{"std", "golang.org/x/sync/errgroup"},
	},
	{
		path:  "changefeed/cosmosfeed",
		allow: []string{"std", "golang.org/x/sync", "github.com/Azure/azure-sdk-for-go/sdk/", "github.com/twmb/murmur3", "feedbox/changefeed"},
	},
	{
		path:   "infrastructure/emulator",
		except: []string{"infrastructure/emulator/cosmosemu", "infrastructure/emulator/busemu", "infrastructure/emulator/internal/disk"},
		allow:  []string{"std"},
		deny:   []string{"testing"},
	},
	{
		path:  "infrastructure/emulator/internal/disk",
		allow: []string{"std", "github.com/cockroachdb/pebble/v2"},
		deny:  []string{"testing"},
	},
	emulator("cosmosemu", "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"),
	emulator("busemu", "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus", "github.com/coder/websocket"),
	adapter("store/document", "feedbox/infrastructure/store/internal/jsontext"),
	adapter("store/internal/jsontext", "feedbox/domain"),
	without(adapter("store/recordstore", "feedbox/changefeed", "feedbox/infrastructure/store/document"), "infrastructure/store/recordstore/recordstoretest"),
	{path: "infrastructure/store/recordstore/recordstoretest", allow: []string{"std", "github.com/google/uuid", "feedbox/domain", "feedbox/application", "feedbox/infrastructure/store/document", "feedbox/infrastructure/store/recordstore"}},
	adapter("store/postgres", "github.com/jackc/pgx/v5", "feedbox/changefeed", "feedbox/infrastructure/store/document", "feedbox/infrastructure/store/recordstore"),
	adapter("store/firestore", "cloud.google.com/go/firestore", "google.golang.org/", "feedbox/changefeed", "feedbox/infrastructure/store/document", "feedbox/infrastructure/store/recordstore"),
	adapter("store/cosmos", "github.com/Azure/azure-sdk-for-go/sdk/", "feedbox/infrastructure/store/document", "feedbox/infrastructure/store/internal/jsontext"),
	adapter("broker/servicebus", append(kit, "github.com/Azure/azure-sdk-for-go/sdk/", "github.com/Azure/go-amqp", "feedbox/infrastructure/process/failpoint")...),
	adapter("broker/rabbitmq", append(kit, "github.com/rabbitmq/amqp091-go", "feedbox/infrastructure/process/failpoint")...),
	adapter("broker/sqs", append(kit, "github.com/aws/", "golang.org/x/sync/semaphore", "feedbox/infrastructure/process/failpoint")...),
	{path: "infrastructure/consumer", except: []string{"infrastructure/consumer/handling", "infrastructure/consumer/cosmosinbox", "infrastructure/consumer/postgresinbox", "infrastructure/consumer/firestoreinbox"}, allow: []string{"std"}, deny: []string{"testing"}},
	{
		path:  "infrastructure/consumer/cosmosinbox",
		allow: []string{"std", "github.com/Azure/azure-sdk-for-go/sdk/", "feedbox/infrastructure/consumer"},
		deny:  []string{"testing"},
	},
	{
		path:  "infrastructure/consumer/postgresinbox",
		allow: []string{"std", "github.com/jackc/pgx/v5", "feedbox/infrastructure/consumer"},
		deny:  []string{"testing"},
	},
	{
		path:  "infrastructure/consumer/firestoreinbox",
		allow: []string{"std", "cloud.google.com/go/firestore", "google.golang.org/grpc", "feedbox/infrastructure/consumer"},
		deny:  []string{"testing"},
	},
	{path: "infrastructure/broker/internal/publish", allow: []string{"std", "feedbox/application/relay", "feedbox/infrastructure/consumer"}, deny: []string{"testing"}},
	{path: "infrastructure/consumer/handling", allow: []string{"std", "feedbox/infrastructure/consumer"}, deny: []string{"testing"}},
	{path: "infrastructure/broker/internal/shared", allow: []string{"std"}, deny: []string{"testing"}},
	adapter("httpapi"),
	adapter("process/config"),
	adapter("process/telemetry"),
	{
		path:   "infrastructure/operator",
		except: []string{"infrastructure/operator/azure", "infrastructure/operator/postgres", "infrastructure/operator/firestore", "infrastructure/operator/rabbit", "infrastructure/operator/fifo"},
		allow: []string{
			"std", "feedbox/domain", "feedbox/application", "feedbox/changefeed", "feedbox/infrastructure/process/config", "feedbox/infrastructure/store/cosmos",
		},
		deny: []string{"testing", "feedbox/changefeed/cosmosfeed"},
	},
	{
		path:  "infrastructure/operator/postgres",
		allow: []string{"std", "feedbox/infrastructure/operator", "feedbox/infrastructure/store/postgres"},
		deny:  []string{"testing"},
	},
	{
		path:  "infrastructure/operator/firestore",
		allow: []string{"std", "feedbox/infrastructure/operator", "feedbox/infrastructure/store/firestore"},
		deny:  []string{"testing"},
	},
	{
		path: "infrastructure/operator/azure",
		allow: []string{
			"std", "github.com/google/uuid", "github.com/Azure/", "feedbox/domain", "feedbox/application", "feedbox/changefeed",
			"feedbox/infrastructure/process/config", "feedbox/infrastructure/store/cosmos", "feedbox/infrastructure/store/document", "feedbox/infrastructure/broker/servicebus", "feedbox/infrastructure/operator",
		},
		deny: []string{"testing"},
	},
	{
		path: "infrastructure/operator/rabbit",
		allow: []string{
			"std", "feedbox/application", "feedbox/infrastructure/process/config", "feedbox/infrastructure/operator", "feedbox/infrastructure/broker/rabbitmq",
		},
	},
	{
		path: "infrastructure/operator/fifo",
		allow: []string{
			"std", "github.com/aws/", "feedbox/application", "feedbox/infrastructure/process/config", "feedbox/infrastructure/operator", "feedbox/infrastructure/broker/sqs",
		},
	},
	{
		path:   "infrastructure/relay/relayservice",
		except: []string{"infrastructure/relay/relayservice/azure"},
		allow: []string{
			"std", "go.opentelemetry.io/otel/metric", "feedbox/application", "feedbox/changefeed", "feedbox/infrastructure/relay/monitor", "feedbox/infrastructure/relay/relayfeed",
		},
		deny: []string{"testing", "feedbox/changefeed/cosmosfeed"},
	},
	{
		path: "infrastructure/relay/relayservice/azure",
		allow: []string{
			"std", "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos", "feedbox/application", "feedbox/changefeed",
			"feedbox/infrastructure/store/cosmos", "feedbox/infrastructure/store/document", "feedbox/infrastructure/broker/servicebus", "feedbox/infrastructure/relay/relayservice",
		},
		deny: []string{"testing", "go.uber.org/fx", "feedbox/infrastructure/process/config"},
	},
	{path: "infrastructure/lab/netfault", allow: []string{"std"}, deny: []string{"testing"}},
	{
		path:  "infrastructure/lab/recorder",
		allow: []string{"std", "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus", "feedbox/infrastructure/lab/verify"},
		deny:  []string{"testing"},
	},
	{
		path: "infrastructure/lab/explorer",
		allow: []string{
			"std", "github.com/Azure/azure-sdk-for-go/sdk/", "feedbox/changefeed", "feedbox/infrastructure/emulator/", "feedbox/infrastructure/page",
		},
		deny: []string{"testing"},
	},
	{
		path: "infrastructure/lab/playground",
		allow: []string{
			"std", "github.com/Azure/azure-sdk-for-go/sdk/", "feedbox/infrastructure/emulator/", "feedbox/infrastructure/lab/netfault",
			"feedbox/infrastructure/page", "feedbox/infrastructure/lab/verify", "feedbox/infrastructure/lab/recorder", "feedbox/infrastructure/lab/workload",
		},
		deny: []string{"testing"},
	},
	{
		path:   "infrastructure/page",
		except: []string{"infrastructure/page/operations"},
		allow:  []string{"std", "feedbox/domain", "feedbox/application", "feedbox/changefeed", "feedbox/infrastructure/httpapi/auth"},
		deny:   []string{"testing"},
	},
	{
		path: "infrastructure/page/operations",
		allow: []string{
			"std", "feedbox/domain", "feedbox/application", "feedbox/changefeed", "feedbox/infrastructure/operator", "feedbox/infrastructure/page",
			"golang.org/x/sync/errgroup", "github.com/prometheus/",
		},
		deny: []string{"testing"},
	},
	{
		path: "infrastructure/relay/monitor",
		allow: []string{
			"std", "go.opentelemetry.io/otel", "github.com/Azure/azure-sdk-for-go/sdk/azcore", "feedbox/application", "feedbox/changefeed",
			"feedbox/infrastructure/store/cosmos", "feedbox/infrastructure/httpapi",
		},
		deny: []string{"testing"},
	},
}

// emulator is the rule of one emulator: its own tree, Pebble, the vendor's SDK for
// the one convenience that hands a test a ready client, and what else it names.
func emulator(name, sdk string, more ...string) layer {
	return layer{
		path: "infrastructure/emulator/" + name,
		allow: append([]string{
			"std", "feedbox/infrastructure/emulator/", "github.com/cockroachdb/pebble/v2",
			sdk, "github.com/Azure/azure-sdk-for-go/sdk/azcore",
		}, more...),
		deny: []string{"testing"},
	}
}

// adapter is the rule of one adapter: the inner layers, never another adapter.
// Third-party modules are free for those that name none.
func adapter(name string, modules ...string) layer {
	allow := []string{"std", "github.com/google/uuid", "feedbox/domain", "feedbox/application"}
	if len(modules) == 0 {
		modules = []string{"third-party"}
	}
	return layer{path: "infrastructure/" + name, allow: append(allow, modules...), deny: []string{"testing", "go.uber.org/fx"}}
}

// without is l but for a package in it that has a rule of its own.
func without(l layer, path string) layer {
	l.except = append(l.except, path)
	return l
}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

func TestImportsPointInward(t *testing.T) {
	packages, std := list(t, "./...")
	for _, p := range packages {
		for _, l := range layers {
			if !l.covers(p.ImportPath) {
				continue
			}
			for _, imported := range p.Imports {
				if !l.permits(imported, std) {
					t.Errorf("%s imports %s, which its layer (%s) may not", p.ImportPath, imported, l.path)
				}
			}
		}
	}
}

func TestOnlyTheEdgesKnowFxAndTheEmulators(t *testing.T) {
	packages, _ := list(t, "./...")
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, module+"/") {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "go.uber.org/fx") && !under(p.ImportPath, "cmd", "infrastructure/wiring", "tests") {
				t.Errorf("%s imports fx: only cmd, infrastructure/wiring and tests may", p.ImportPath)
			}
			if strings.HasPrefix(imported, "feedbox/infrastructure/emulator/") &&
				!under(p.ImportPath, slices.Concat([]string{"cmd/feedbox-dev", "infrastructure/emulator", "tests"}, devOnly)...) {
				t.Errorf("%s imports an emulator: only feedbox-dev, what only it links, and tests may", p.ImportPath)
			}
		}
	}
}

// devOnly are packages that only feedbox-dev links: they work on the emulators.
var devOnly = []string{"infrastructure/lab/explorer", "infrastructure/lab/playground"}

func TestTheProductionBinaryLinksNoTestCode(t *testing.T) {
	packages, _ := list(t, "./cmd/feedbox")
	for _, p := range packages {
		switch {
		case under(p.ImportPath, "infrastructure/emulator", "infrastructure/lab/netfault", "tests"), under(p.ImportPath, devOnly...),
			p.ImportPath == "testing", strings.HasPrefix(p.ImportPath, "github.com/cockroachdb/"):
			t.Errorf("cmd/feedbox links %s", p.ImportPath)
		}
	}
}

func (l layer) covers(path string) bool {
	return under(path, l.path) && !under(path, l.except...)
}

func (l layer) permits(imported string, std map[string]bool) bool {
	for _, d := range l.deny {
		if imported == d {
			return false
		}
	}
	if under(imported, l.path) {
		return true
	}
	for _, a := range l.allow {
		switch {
		case a == "std" && std[imported]:
			return true
		case a == "third-party" && !std[imported] && !strings.HasPrefix(imported, module+"/"):
			return true
		case strings.HasPrefix(imported, a):
			return true
		}
	}
	return false
}

// under tells whether an import path lies in one of the module's sub-trees.
func under(path string, trees ...string) bool {
	for _, tree := range trees {
		full := module + "/" + tree
		if path == full || strings.HasPrefix(path, full+"/") {
			return true
		}
	}
	return false
}

// list asks the go command for the packages matching pattern and all they need.
func list(t *testing.T, pattern string) (packages []pkg, std map[string]bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports", pattern)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pattern, err)
	}
	std = map[string]bool{"C": true, "unsafe": true}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, std
		} else if err != nil {
			t.Fatal(err)
		}
		std[p.ImportPath] = p.Standard
		packages = append(packages, p)
	}
}
