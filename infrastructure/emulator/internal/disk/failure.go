package disk

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

// Commit writes a batch and blocks until it is durable.
func (d *DB) Commit(batch *pebble.Batch) error {
	if d.memory {
		return d.Apply(batch, pebble.NoSync)
	}
	if err := d.Err(); err != nil {
		return err
	}
	// Apply is not used, because Pebble would then end the process if the disk fails.
	err := d.ApplyNoSyncWait(batch, pebble.Sync)
	if err == nil {
		err = batch.SyncWait()
	}
	if err != nil {
		d.Fail(err)
	}
	return err
}

// Sync blocks until all earlier writes are durable.
func (d *DB) Sync() error {
	batch := d.NewBatch()
	if err := batch.LogData(nil, nil); err != nil { // an empty batch would not be written
		return errors.Join(err, batch.Close())
	}
	return errors.Join(d.Commit(batch), batch.Close())
}

// Fail records the error after which the store must not be used. Only the first one is kept.
func (d *DB) Fail(cause error) {
	if d.failure.CompareAndSwap(nil, &cause) {
		d.failed <- cause
		d.logger.Error("emulator store failed", "dir", d.dir, "error", cause)
	}
}

// Err returns the error after which the store must not be used, nil before it.
func (d *DB) Err() error {
	if cause := d.failure.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Failed receives that error once.
func (d *DB) Failed() <-chan error { return d.failed }

// AsDamage wraps an error of Pebble that means corrupt data with ErrDamaged.
func AsDamage(err error) error {
	if errors.Is(err, pebble.ErrCorruption) && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// pebbleLogger logs Pebble's messages. Pebble calls Fatalf if it can no longer guarantee its
// state, and expects it not to return. Fatalf panics on a goroutine of its own, because net/http
// would recover from a panic of a request and continue with a store in an unknown state.
type pebbleLogger struct{ logger *slog.Logger }

func (l pebbleLogger) Infof(string, ...any) {} // only flushes and compactions

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.logger.Error(fmt.Sprintf(format, args...), "component", "pebble")
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	failure := "emulator store: fatal error of Pebble: " + fmt.Sprintf(format, args...)
	go func() { panic(failure) }()
	select {} // until the process has ended
}
