package disk

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func open(fs vfs.FS, version string) (*DB, error) {
	return Open(&Options{Dir: "d", FS: fs, Version: version, Logger: slog.New(slog.DiscardHandler), Pebble: &pebble.Options{}})
}

func mustOpen(t *testing.T, fs vfs.FS) *DB {
	t.Helper()
	d, err := open(fs, "1")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func put(d *DB, key string) error {
	batch := d.NewBatch()
	return errors.Join(batch.Set([]byte(key), nil, nil), d.Commit(batch), batch.Close())
}

func has(d *DB, key string) bool {
	_, closer, err := d.Get([]byte(key))
	return err == nil && closer.Close() == nil
}

func mustClose(t *testing.T, d *DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherVersionIsRefusedAndUnchanged(t *testing.T) {
	fs := vfs.NewMem()
	d := mustOpen(t, fs)
	if err := put(d, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(fs, "1"); err == nil {
		t.Error("opened twice")
	}
	mustClose(t, d)
	for range 2 {
		if _, err := open(fs, "2"); !errors.Is(err, ErrVersion) {
			t.Errorf("another version: %v", err)
		}
	}
	d = mustOpen(t, fs)
	defer mustClose(t, d)
	if !has(d, "a") {
		t.Error("the data is gone")
	}
}

// Pebble treats a truncated manifest as a new one, and its tables as obsolete.
func TestTablesWithoutManifestAreDamage(t *testing.T) {
	fs := vfs.NewCrashableMem()
	d := mustOpen(t, fs)
	if err := errors.Join(put(d, "a"), d.Flush()); err != nil {
		t.Fatal(err)
	}
	left := fs.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, d)
	names, err := left.List("d")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for i, name := range names {
		switch {
		case i == 0: // the first log, whose records are in the table; Pebble would delete it later
			if err := left.Remove(left.PathJoin("d", name)); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(name, "MANIFEST"):
			data, err := read(left, left.PathJoin("d", name))
			if err != nil {
				t.Fatal(err)
			}
			end := (&file{data: data}).end()
			if err := write(left, "d", name, data[:end-1]); err != nil { // the last edit, which names the table
				t.Fatal(err)
			}
		}
	}
	if _, err := open(left, "1"); !errors.Is(err, ErrDamaged) {
		t.Errorf("opened: %v", err)
	}
}

// onLog returns a file system that calls do before each fsync of a log.
func onLog(fs vfs.FS, do func() error) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if sync && filepath.Ext(op.Path) == ".log" {
			return do()
		}
		return nil
	}))
}

// After a failed write of the log the error is reported once, all later writes are refused, and
// acknowledged data is there after a restart.
func TestFailedLogRefusesLaterWrites(t *testing.T) {
	var broken atomic.Bool
	full := errors.New("no space left on device")
	disk := vfs.NewCrashableMem()
	d := mustOpen(t, onLog(disk, func() error {
		if broken.Load() {
			return full
		}
		return nil
	}))
	if err := errors.Join(put(d, "a"), d.Sync(), d.Err()); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if err := d.Sync(); !errors.Is(err, full) {
		t.Errorf("a failed fsync: %v", err)
	}
	broken.Store(false)
	for range 2 {
		if err := put(d, "b"); !errors.Is(err, full) {
			t.Errorf("a commit after the failure: %v", err)
		}
	}
	if err := <-d.Failed(); !errors.Is(err, full) || !errors.Is(d.Err(), full) {
		t.Errorf("reported %v, then %v", err, d.Err())
	}
	left := disk.CrashClone(vfs.CrashCloneCfg{})
	_ = d.Close() // fails, because the disk does
	if _, err := disk.Stat("d/" + sealName); err == nil {
		t.Error("sealed")
	}
	d = mustOpen(t, left)
	defer mustClose(t, d)
	if !has(d, "a") || has(d, "b") {
		t.Errorf("a is there: %t, b: %t", has(d, "a"), has(d, "b"))
	}
}

// A fatal error of Pebble ends the process even if a caller recovers from panics, as net/http
// does.
func TestFatalErrorEndsTheProcess(t *testing.T) {
	const variable = "STORE_FAILURE_CHILD"
	if os.Getenv(variable) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFatalErrorEndsTheProcess$", "-test.timeout=20s")
		child.Env = append(os.Environ(), variable+"=1")
		out, err := child.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "fatal error of Pebble") || strings.Contains(string(out), "lived on") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	d := mustOpen(t, onLog(vfs.NewMem(), func() error { return errors.New("the disk is gone") }))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		_ = d.Set([]byte("a"), nil, pebble.Sync)
	}()
	<-done
	t.Fatal("the process lived on")
}
