package store

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

const (
	// memTableSize is the largest size of one table in memory. It starts at 256 KB.
	memTableSize = 32 << 20
	// cacheSize limits the block cache and the tables in memory together, so it must be
	// several times memTableSize. Memory is allocated only as needed.
	cacheSize = 256 << 20
)

// tuning returns Pebble options for a small emulator that starts quickly.
func tuning(durable bool) *pebble.Options {
	o := &pebble.Options{
		CacheSize:             cacheSize,
		MemTableSize:          memTableSize,
		L0CompactionThreshold: 4,
		L0StopWritesThreshold: 64,
	}
	if !durable {
		o.L0CompactionThreshold = 16 // higher than the default, because reads are cheap and much data is short-lived
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		if !durable { // tables are in memory too, so compression would only cost time
			o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		}
	}
	return o
}
