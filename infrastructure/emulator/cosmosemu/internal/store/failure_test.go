package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

var errSeen = errors.New("it is there already")

// createOnce is a transaction that is refused if the document is there.
func createOnce(tx *Tx) error {
	if _, found, err := tx.Get("a"); err != nil || found {
		return errors.Join(err, errSeen)
	}
	doc, err := document.Parse([]byte(`{"id":"a","pk":"a"}`), []document.Path{{"pk"}})
	if err == nil {
		_, err = tx.Put(doc)
	}
	return err
}

// onSync is a file system that calls do before each fsync of a log.
func onSync(do func() error) vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if sync && filepath.Ext(op.Path) == ".log" {
			return do()
		}
		return nil
	}))
}

// A refusal tells what is stored: it must not speak of a write that a crash could
// still take back.
func TestARefusalWaitsUntilWhatItSawIsDurable(t *testing.T) {
	var hold atomic.Bool
	reached, release := make(chan struct{}, 100), make(chan struct{})
	w := &world{t: t, m: model{items: make(map[string]modelItem)}, fs: onSync(func() error {
		if hold.Load() {
			reached <- struct{}{}
			<-release
		}
		return nil
	})}
	w.open()
	defer func() {
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
	}()
	part := NewPartition(epk.Key{epk.String("a")}, false)
	hold.Store(true)
	written, refused := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := w.c.Update(part, createOnce)
		written <- err
	}()
	<-reached // applied, and the disk takes its time
	go func() {
		_, err := w.c.Update(part, createOnce)
		refused <- err
	}()
	select {
	case err := <-refused:
		t.Errorf("answered %v before the write it saw was durable", err)
	case <-time.After(50 * time.Millisecond):
	}
	hold.Store(false)
	close(release)
	if err := <-written; err != nil {
		t.Error(err)
	}
	if !t.Failed() {
		if err := <-refused; !errors.Is(err, errSeen) {
			t.Errorf("answered %v, want that it is there", err)
		}
	}
}

// A store that cannot write its log ends the process, also where a caller recovers
// from panics, as net/http does: nothing may be answered from then on.
func TestAStorageFailureEndsTheProcess(t *testing.T) {
	const variable = "STORE_FAILURE_CHILD"
	if os.Getenv(variable) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAStorageFailureEndsTheProcess$", "-test.timeout=20s")
		child.Env = append(os.Environ(), variable+"=1")
		out, err := child.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "storage failure") || strings.Contains(string(out), "lived on") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	var fail atomic.Bool
	w := &world{t: t, m: model{items: make(map[string]modelItem)}, fs: onSync(func() error {
		if fail.Load() {
			return errors.New("the disk is gone")
		}
		return nil
	})}
	w.open()
	fail.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		_, _ = w.c.Update(NewPartition(epk.Key{epk.String("a")}, false), createOnce)
	}()
	<-done
	t.Fatal("the process lived on")
}
