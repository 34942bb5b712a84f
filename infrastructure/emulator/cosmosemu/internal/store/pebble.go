package store

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// memTableSize is what one table in memory grows to, from 256 KB.
	memTableSize = 32 << 20
	// cacheSize bounds the block cache and the tables in memory together, so it
	// must hold a few of these. It is taken as it is needed.
	cacheSize = 256 << 20
)

// pebbleOptions tunes Pebble for a small, quick-starting emulator. The format is
// the newest: from FormatWALSyncChunks on, a log damaged in its synced part is
// refused instead of being cut short.
func pebbleOptions(fs vfs.FS, durable bool, cache *pebble.Cache, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS:                    fs,
		Cache:                 cache,
		DisableWAL:            !durable,
		FormatMajorVersion:    pebble.FormatNewest,
		MemTableSize:          memTableSize,
		L0CompactionThreshold: 4,
		L0StopWritesThreshold: 64,
		Logger:                pebbleLogger{log},
	}
	if !durable {
		o.L0CompactionThreshold = 16 // reads are cheap enough, and much is short-lived
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		if !durable { // memory on both sides: compression would only cost time
			o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		}
	}
	return o
}

// pebbleLogger passes Pebble's reports to slog. Pebble calls Fatalf when it can
// no longer keep its promises (a failed write to the log) and expects not to
// come back. So it panics, on a goroutine of its own: net/http would recover from
// a panic of a request and go on with a store of which nobody knows what it holds.
type pebbleLogger struct{ log *slog.Logger }

func (l pebbleLogger) Infof(string, ...any) {} // flushes and compactions: noise

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error(fmt.Sprintf(format, args...), "component", "pebble")
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	failure := "cosmosemu: storage failure: " + fmt.Sprintf(format, args...)
	go func() { panic(failure) }()
	select {} // until the process has ended
}
