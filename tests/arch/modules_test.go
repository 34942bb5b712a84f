package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A relay of one store and one broker links the client modules of these two and nothing of the
// others, because each module that a program links is one that its owner has to keep patched.
func TestRelayLinksOnlyItsOwnClients(t *testing.T) {
	for name, c := range map[string]struct {
		packages []string
		modules  []string
	}{
		"PostgreSQL and RabbitMQ": {
			[]string{"./infrastructure/store/postgres", "./infrastructure/broker/rabbitmq"},
			[]string{
				"github.com/cespare/xxhash/v2", "github.com/google/uuid", "github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile",
				"github.com/jackc/pgx/v5", "github.com/jackc/puddle/v2", "github.com/rabbitmq/amqp091-go", "go.opentelemetry.io/otel",
				"go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace", "golang.org/x/sync", "golang.org/x/text",
			},
		},
	} {
		list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./infrastructure/relay/relayservice"}, c.packages...)...)
		list.Dir = "../.."
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		linked := strings.Fields(string(out))
		slices.Sort(linked)
		linked = slices.DeleteFunc(slices.Compact(linked), func(path string) bool { return path == module })
		if !slices.Equal(linked, c.modules) {
			t.Errorf("a relay of %s links\n%q\nwant\n%q", name, linked, c.modules)
		}
	}
}
