package busemu_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"feedbox/infrastructure/emulator/busemu"
)

// A failed disk is reported by the server, not only to the client whose send failed.
func TestServerReportsFailedDisk(t *testing.T) {
	var broken atomic.Bool
	full := errors.New("no space left on device")
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if broken.Load() && sync && filepath.Ext(op.Path) == ".log" {
			return full
		}
		return nil
	}))
	srv, err := busemu.Start(&busemu.Options{Addr: "-", AdminAddr: "-", DataDir: "bus", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }() // the disk is broken
	if err := srv.CreateQueue(t.Context(), busemu.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-srv.Failed():
		t.Fatalf("failed without a reason: %v", err)
	default:
	}
	broken.Store(true)
	for _, name := range []string{"r", "s", "r"} { // the last one exists in memory but is not stored
		if err := srv.CreateQueue(t.Context(), busemu.Queue{Name: name}); err == nil || !strings.Contains(err.Error(), full.Error()) {
			t.Errorf("a queue on a broken disk: %v", err)
		}
	}
	if err := <-srv.Failed(); !errors.Is(err, full) {
		t.Errorf("told %v, want %v", err, full)
	}
	memory, err := busemu.Start(&busemu.Options{Addr: "-", AdminAddr: "-"})
	if err != nil {
		t.Fatal(err)
	}
	if memory.Failed() != nil {
		t.Error("memory can fail")
	}
	if err := memory.Close(); err != nil {
		t.Error(err)
	}
}
