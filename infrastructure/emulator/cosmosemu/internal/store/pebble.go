package store

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

const (
	// memTableSize is what one table in memory grows to, from 256 KB.
	memTableSize = 32 << 20
	// cacheSize bounds the block cache and the tables in memory together, so it
	// must hold a few of these. It is taken as it is needed.
	cacheSize = 256 << 20
)

// tuning fits Pebble to a small, quick-starting emulator.
func tuning(durable bool) *pebble.Options {
	o := &pebble.Options{
		CacheSize:             cacheSize,
		MemTableSize:          memTableSize,
		L0CompactionThreshold: 4,
		L0StopWritesThreshold: 64,
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
