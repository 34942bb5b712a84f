package changefeed_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/changefeed"
)

// A handler that panics fails, and ends nothing else. It runs in a process of its own,
// whose end can be seen.
func TestAPanicEndsNoProcess(t *testing.T) {
	const child = "CHANGEFEED_PANIC_CHILD"
	if os.Getenv(child) != "" {
		w := newWorld(t, 1)
		var calls atomic.Int32
		handled := make(chan struct{})
		w.put(1, 1)
		w.start("a", changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error {
			if calls.Add(1) == 1 {
				panic("cannot handle it")
			}
			close(handled)
			return nil
		}), nil)
		select {
		case <-handled:
		case <-time.After(30 * time.Second):
			t.Error("not handled")
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		said, _, _ := strings.Cut(string(out), "\n") // of the panic, not its stack
		t.Errorf("the process ended with %v: %s", err, said)
	}
}
