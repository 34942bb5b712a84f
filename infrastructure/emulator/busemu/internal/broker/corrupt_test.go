package broker

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// written returns a store with messages in its tables and its log, after a crash or a clean
// close.
func written(t *testing.T, clean bool) *vfs.MemFS {
	t.Helper()
	r := &rig{t: t, fs: vfs.NewCrashableMem()}
	r.open(r.fs)
	r.queue("q", Queue{RequiresDuplicateDetection: true})
	for i := range 100 {
		r.send("q", msg(fmt.Sprint("in a table ", i)))
	}
	if err := r.store.db.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		r.send("q", msg(fmt.Sprint("in the log ", i)))
	}
	left := r.fs.CrashClone(vfs.CrashCloneCfg{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if clean {
		left = r.fs.CrashClone(vfs.CrashCloneCfg{})
	}
	return left
}

// A flipped bit in a data file is never ignored: the broker refuses the store or has all
// messages. The last chunk of a log or manifest is exempt after a crash, because it looks like
// a write cut short.
func TestDamagedFilesAreRefused(t *testing.T) {
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprintf("clean=%t", clean), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := written(t, clean)
				names, err := fs.List("bus")
				if err != nil {
					t.Fatal(err)
				}
				refused := 0
				for _, name := range names {
					size := len(strings.TrimRight(string(contents(t, fs, name)), "\x00"))
					for part := range 16 {
						at := size * part / 16
						if size == 0 || !clean && part == 15 && filepath.Ext(name) != ".sst" {
							continue
						}
						damaged := fs.CrashClone(vfs.CrashCloneCfg{})
						flip(t, damaged, name, at)
						switch held, err := reopen(damaged); {
						case err != nil:
							refused++
						case held != 200:
							t.Errorf("%s of %d bytes, bit flipped at %d: opened with %d messages", name, size, at, held)
						}
					}
				}
				if refused < 30 {
					t.Errorf("refused %d times with files %q", refused, names)
				}
				if held, err := reopen(fs); err != nil || held != 200 {
					t.Errorf("undamaged: %d messages, %v", held, err)
				}
			})
		})
	}
}

// A file that is truncated, missing or replaced by an older copy is detected after a clean
// close.
func TestForeignFilesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := written(t, true)
		names, err := fs.List("bus")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if kind := filepath.Ext(name); kind != ".log" && kind != ".sst" && !strings.HasPrefix(name, "MANIFEST") {
				continue
			}
			shorter := fs.CrashClone(vfs.CrashCloneCfg{})
			data := contents(t, fs, name)
			overwrite(t, shorter, name, data[:len(data)-1])
			if _, err := reopen(shorter); err == nil {
				t.Errorf("%s is shorter: opened", name)
			}
			missing := fs.CrashClone(vfs.CrashCloneCfg{})
			if err := missing.Remove(missing.PathJoin("bus", name)); err != nil {
				t.Fatal(err)
			}
			if _, err := reopen(missing); err == nil {
				t.Errorf("%s is missing: opened", name)
			}
		}
	})
}

// A store has one broker at a time.
func TestStoreInUse(t *testing.T) {
	durable(t, func(t *testing.T, r *rig) {
		if _, err := reopen(r.fs); err == nil {
			t.Error("opened twice")
		}
	})
}

// reopen opens a store and returns the number of its messages.
func reopen(fs vfs.FS) (held int, err error) {
	b, err := Open(&Options{Dir: "bus", FS: fs})
	if err != nil {
		return 0, err
	}
	ds, err := b.Peek("q", PeekOptions{Count: 1000})
	return len(ds), errors.Join(err, b.Close())
}

func contents(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin("bus", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func flip(t *testing.T, fs vfs.FS, name string, at int) {
	t.Helper()
	data := contents(t, fs, name)
	data[at] ^= 0x10
	overwrite(t, fs, name, data)
}

func overwrite(t *testing.T, fs vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("bus", name), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Inconsistent records are refused even if their checksums are right.
func TestInconsistentRecordsAreRefused(t *testing.T) {
	queueID := holderID(1, 0)
	message := appendMessage(nil, &message{body: &body{}})
	for name, change := range map[string]func(db *pebble.DB) error{
		"another version": func(db *pebble.DB) error { return db.Set([]byte{kindVersion}, []byte("busemu 0"), pebble.Sync) },
		"version missing": func(db *pebble.DB) error { return db.Delete([]byte{kindVersion}, pebble.Sync) },
		"entity":          func(db *pebble.DB) error { return db.Set(holderKey(nil, kindEntity, 9), []byte("{"), pebble.Sync) },
		"entity of no kind": func(db *pebble.DB) error {
			return db.Set(holderKey(nil, kindEntity, 1), []byte(`{"ID":1}`), pebble.Sync)
		},
		"last id":           func(db *pebble.DB) error { return db.Set([]byte{kindLastID}, make([]byte, 4), pebble.Sync) },
		"message of nobody": func(db *pebble.DB) error { return db.Set(sequenceKey(nil, kindMessage, 99, 1), message, pebble.Sync) },
		"message record": func(db *pebble.DB) error {
			return db.Set(sequenceKey(nil, kindMessage, queueID, 1), []byte{7}, pebble.Sync)
		},
		"message of the future": func(db *pebble.DB) error {
			return db.Set(sequenceKey(nil, kindMessage, queueID, 1<<40), message, pebble.Sync)
		},
		"state without message": func(db *pebble.DB) error {
			return db.Set(append(sequenceKey(nil, kindMessage, queueID, 900), stateSuffix), []byte{1, 0, 0}, pebble.Sync)
		},
		"message key": func(db *pebble.DB) error { return db.Set(holderKey(nil, kindMessage, queueID), message, pebble.Sync) },
		"sequence number": func(db *pebble.DB) error {
			return db.Set(holderKey(nil, kindSequence, queueID), []byte{1}, pebble.Sync)
		},
		"sequence number too low": func(db *pebble.DB) error {
			return db.Set(holderKey(nil, kindSequence, queueID), make([]byte, 8), pebble.Sync)
		},
		"session of a queue without": func(db *pebble.DB) error {
			return db.Set(append(holderKey(nil, kindSession, queueID), "x"...), make([]byte, 8), pebble.Sync)
		},
		"history": func(db *pebble.DB) error {
			return db.Set(historyKey(nil, queueID, 1, 1), make([]byte, 15), pebble.Sync)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := written(t, false)
				db, err := pebble.Open("bus", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest, Logger: pebble.DefaultLogger})
				if err != nil {
					t.Fatal(err)
				}
				if err := change(db); err != nil {
					t.Fatal(err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := reopen(fs); err == nil {
					t.Error("opened")
				} else {
					t.Log(err)
				}
			})
		})
	}
}
