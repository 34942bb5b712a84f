package disk

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

// Commit writes a batch and returns when it is durable.
func (d *DB) Commit(batch *pebble.Batch) error {
	if d.memory {
		return d.Apply(batch, pebble.NoSync)
	}
	if err := d.Err(); err != nil {
		return err
	}
	// With Apply, Pebble would end the process if the disk fails.
	err := d.ApplyNoSyncWait(batch, pebble.Sync)
	if err == nil {
		err = batch.SyncWait()
	}
	if err != nil {
		d.Fail(err)
	}
	return err
}

// Sync returns when everything written before is durable.
func (d *DB) Sync() error {
	batch := d.NewBatch()
	if err := batch.LogData(nil, nil); err != nil { // an empty batch would not be written
		return errors.Join(err, batch.Close())
	}
	return errors.Join(d.Commit(batch), batch.Close())
}

// Fail notes why nothing more can be answered. The first reason counts.
func (d *DB) Fail(cause error) {
	if d.failure.CompareAndSwap(nil, &cause) {
		d.failed <- cause
		d.logger.Error("the store failed", "dir", d.dir, "error", cause)
	}
}

// Err is why nothing more can be answered, nil while all is well.
func (d *DB) Err() error {
	if cause := d.failure.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Failed receives the reason once, if the store fails.
func (d *DB) Failed() <-chan error { return d.failed }

// AsDamage marks an error of Pebble that means corrupt data as ErrDamaged.
func AsDamage(err error) error {
	if errors.Is(err, pebble.ErrCorruption) && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// pebbleLogger passes Pebble's reports on. Pebble calls Fatalf when it can no longer
// keep its promises and expects it not to return. So it panics, on a goroutine of its
// own: net/http would recover from the panic of a request and go on with a store of
// which nobody knows what it holds.
type pebbleLogger struct{ logger *slog.Logger }

func (l pebbleLogger) Infof(string, ...any) {} // flushes and compactions: noise

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.logger.Error(fmt.Sprintf(format, args...), "component", "pebble")
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	failure := "the emulator's store cannot go on: " + fmt.Sprintf(format, args...)
	go func() { panic(failure) }()
	select {} // until the process has ended
}
