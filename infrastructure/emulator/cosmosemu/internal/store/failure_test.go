package store

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

var errSeen = errors.New("it is there already")

// createOnce is a transaction that is refused if the document exists.
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

// onSync returns a file system that calls do before each fsync of a log.
func onSync(do func() error) vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if sync && filepath.Ext(op.Path) == ".log" {
			return do()
		}
		return nil
	}))
}

// A refusal discloses the stored state, so it must not depend on a write that a crash could
// still undo.
func TestRefusalWaitsUntilObservedStateIsDurable(t *testing.T) {
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
	part := NewPartition(epk.Key{epk.String("a")}, epk.V2)
	hold.Store(true)
	written, refused := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := w.c.Update(part, createOnce)
		written <- err
	}()
	<-reached // the write is applied, and its fsync is running
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

// After a failed fsync neither that write nor any later one is acknowledged.
func TestFailedDiskIsReported(t *testing.T) {
	var broken atomic.Bool
	full := errors.New("no space left on device")
	w := &world{t: t, m: model{items: make(map[string]modelItem)}, fs: onSync(func() error {
		if broken.Load() {
			return full
		}
		return nil
	})}
	w.open()
	defer func() { _ = w.s.Close() }() // fails, because the disk does
	broken.Store(true)
	for range 2 {
		if _, err := w.c.Update(NewPartition(epk.Key{epk.String("a")}, epk.V2), createOnce); !errors.Is(err, full) {
			t.Errorf("a write to a broken disk: %v", err)
		}
	}
	if _, err := w.s.CreateDatabase("other"); !errors.Is(err, full) {
		t.Errorf("a database on a broken disk: %v", err)
	}
	if err := <-w.s.Failed(); !errors.Is(err, full) || !errors.Is(w.s.Err(), full) {
		t.Errorf("reported %v, then %v", err, w.s.Err())
	}
}
