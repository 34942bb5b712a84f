package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// ErrDamaged is wrapped by the error of Open if the files are damaged, and by DB.Err after a
// read of corrupt data.
var ErrDamaged = errors.New("the store is damaged")

// ErrVersion is wrapped by the error of Open for a store of another version.
var ErrVersion = errors.New("the store was written by another version")

// versionKey is the key of the version record.
var versionKey = []byte{'v'}

// Options configure a store.
type Options struct {
	Dir string // created if it does not exist
	FS  vfs.FS // default: the operating system's
	// Memory is for a file system in memory. No log is written and nothing is checked, synced
	// or sealed, because no data outlives the process.
	Memory  bool
	Version string          // the value of the record under the key "v"
	Logger  *slog.Logger    // receives errors that no call can return
	Pebble  *pebble.Options // tuning; file system, format, log and listener are set by Open
}

// DB is an open store. Write with Commit, or write without waiting for the disk and call Sync
// afterwards.
type DB struct {
	*pebble.DB
	fs      vfs.FS
	logs    syncedLogs
	dir     string
	memory  bool
	lock    *pebble.Lock // nil in memory
	logger  *slog.Logger
	failure atomic.Pointer[error]
	failed  chan error // capacity 1, so that Fail does not block
}

// Open opens a store or creates it.
func Open(o *Options) (*DB, error) {
	d := &DB{fs: o.FS, dir: o.Dir, memory: o.Memory, logger: o.Logger, failed: make(chan error, 1)}
	if d.fs == nil {
		d.fs = vfs.Default
	}
	if err := d.open(o); err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", o.Dir, AsDamage(err))
	}
	return d, nil
}

func (d *DB) open(o *Options) (err error) {
	options := o.Pebble
	options.FS = d.fs
	options.DisableWAL = d.memory
	// In older formats Pebble opens a log with a flipped bit and drops the records after it.
	options.FormatMajorVersion = pebble.FormatNewest
	options.Logger = pebbleLogger{d.logger}
	options.EventListener = &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
		d.Fail(fmt.Errorf("%w: %s: %w", ErrDamaged, info.Path, info.Details))
	}}
	hasTables := false
	if !d.memory {
		if err := d.fs.MkdirAll(d.dir, 0o700); err != nil {
			return err
		}
		if d.lock, err = pebble.LockDirectory(d.dir, d.fs); err != nil {
			return fmt.Errorf("lock the directory (is another process using it?): %w", err)
		}
		options.Lock = d.lock
		if hasTables, err = check(d.fs, d.dir); err == nil {
			err = d.startNewest()
		}
		if err == nil {
			err = d.logs.open(d.fs, d.dir)
			options.FS = &d.logs
		}
	}
	if err == nil {
		d.DB, err = pebble.Open(d.dir, options)
	}
	if err != nil {
		return errors.Join(err, d.unlock())
	}
	if err := d.checkVersion(o.Version, hasTables); err != nil {
		if errors.Is(err, ErrDamaged) {
			d.Fail(err) // so that Close writes no seal
		}
		return errors.Join(err, d.Close())
	}
	return nil
}

// startNewest marks an empty directory as one of the newest format. Pebble would start with the
// oldest, which cannot distinguish damage of the first log from its end, and would sync the
// directory for each format up to the newest.
func (d *DB) startNewest() error {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != "LOCK" }) {
		return nil
	}
	marker, _, err := atomicfs.LocateMarker(d.fs, d.dir, "format-version")
	if err != nil {
		return err
	}
	return errors.Join(marker.Move(pebble.FormatNewest.String()), marker.Close())
}

// checkVersion checks the version record, or writes it to a new store.
func (d *DB) checkVersion(want string, hasTables bool) error {
	value, closer, err := d.Get(versionKey)
	if err == nil {
		found := string(value)
		if err := closer.Close(); err != nil {
			return err
		}
		if found != want {
			return fmt.Errorf("%w: found %q, expected %q: use an empty directory", ErrVersion, found, want)
		}
		return nil
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return err
	}
	if hasTables {
		return fmt.Errorf("%w: there are tables, but the manifest lists none", ErrDamaged)
	}
	it, err := d.NewIter(nil)
	if err != nil {
		return err
	}
	if it.First() {
		err = fmt.Errorf("%w: there are records but no version", ErrDamaged)
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return err
	}
	// No sync is needed: the log is in order, so no later record can be durable without this one.
	return d.Set(versionKey, []byte(want), pebble.NoSync)
}

// Close closes the store and seals its files, so that later damage is detected. All writes are
// durable after it.
func (d *DB) Close() error {
	err := d.DB.Close()
	if err == nil && !d.memory && d.Err() == nil {
		err = seal(d.fs, d.dir)
	}
	return errors.Join(err, d.unlock())
}

func (d *DB) unlock() error {
	if d.lock == nil {
		return nil
	}
	var err error
	if d.logs.note != nil {
		err = d.logs.note.Close()
	}
	return errors.Join(err, d.lock.Close())
}
