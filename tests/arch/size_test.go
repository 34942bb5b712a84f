package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Limits on the layout. A room is a top-level folder or a folder of infrastructure, an arrow an
// import between two rooms, and the floors are the longest path of arrows. A newcomer learns
// these first, so they may shrink but not grow. The root package is an index of names and no room
// (TestRootPackageHasOnlyNames).
const (
	maxRooms  = 16
	maxFloors = 7
	maxArrows = 55
)

func TestLayoutStaysSmall(t *testing.T) {
	packages, _ := list(t, "./...")
	arrows := map[string]map[string]bool{} // from room to rooms
	count := 0
	for _, p := range packages {
		from := roomOf(p.ImportPath)
		if from == "" {
			continue
		}
		if arrows[from] == nil {
			arrows[from] = map[string]bool{}
		}
		for _, imported := range p.Imports {
			if to := roomOf(imported); to != "" && to != from && !arrows[from][to] {
				arrows[from][to] = true
				count++
			}
		}
	}
	floors := 0
	for room := range arrows {
		floors = max(floors, height(t, arrows, room, nil))
	}
	t.Logf("%d rooms, %d floors, %d arrows", len(arrows), floors, count)
	if len(arrows) > maxRooms || floors > maxFloors || count > maxArrows {
		t.Errorf("more than %d rooms, %d floors or %d arrows", maxRooms, maxFloors, maxArrows)
	}
}

// roomOf returns the room of a package, "" if it is none of ours or below tests.
func roomOf(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
	switch {
	case !strings.HasPrefix(path, module+"/"), parts[0] == "tests":
		return ""
	case parts[0] == "infrastructure":
		return strings.Join(parts[:2], "/")
	}
	return parts[0]
}

// height returns the number of floors from a room down, and fails the test on a cycle.
func height(t *testing.T, arrows map[string]map[string]bool, room string, above []string) int {
	t.Helper()
	for _, r := range above {
		if r == room {
			t.Fatalf("a cycle of rooms: %v", append(above, room))
		}
	}
	below := 0
	for to := range arrows[room] {
		below = max(below, height(t, arrows, to, append(above, room)))
	}
	return below + 1
}

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
