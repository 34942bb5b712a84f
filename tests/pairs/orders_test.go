package pairs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// The order service of tests/adopter, a separate module, runs its own tests, from a request
// to a total, on every pair, and those of payments in PostgreSQL.
func TestOrders(t *testing.T) {
	t.Parallel()
	orders(t, "(TestAnOrderFromRequestToTotal|TestPaymentsAreCounted)")
}

// orders runs tests of tests/adopter on every pair.
func orders(t *testing.T, name string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "orders.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-o", binary, ".")
	build.Dir = filepath.Join("..", "adopter")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eachPair(t, func(t *testing.T, makeStore storeKind, makeBroker brokerKind) {
		t.Parallel()
		s, b := makeStore.open(t), makeBroker.open(t)
		cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^"+name+"$", "-test.v")
		cmd.Dir = build.Dir
		cmd.Env = slices.Concat(os.Environ(), s.orders, b.orders)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
	})
}
