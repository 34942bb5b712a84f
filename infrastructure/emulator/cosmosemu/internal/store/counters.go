package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// counter counts the transactions of one physical partition.
type counter struct {
	applied atomic.Uint64 // last LSN written to Pebble; stored by holders of Container.writing
	visible atomic.Uint64 // last LSN that readers see
}

func newCounter(start uint64) *counter {
	c := new(counter)
	c.applied.Store(start)
	c.visible.Store(start)
	return c
}

// publish makes commits up to lsn visible to readers.
func (c *counter) publish(lsn uint64) {
	for {
		old := c.visible.Load()
		if old >= lsn || c.visible.CompareAndSwap(old, lsn) {
			return
		}
	}
}

// settled reports whether readers see all applied commits.
func (c *counter) settled() bool { return c.applied.Load() == c.visible.Load() }

// The last LSN of a range is the LSN of the last document or feed entry in its segment, or
// the start of the range. Only a removal can delete these, so only removals store the LSN in
// a record of its own.

func appendCounter(dst []byte, lsn uint64) []byte { return binary.BigEndian.AppendUint64(dst, lsn) }

// loadCounters finds the last LSN of each range when a store is opened.
func (c *Container) loadCounters() error {
	ranges := c.Topology().Ranges
	for i := range ranges {
		lsn, err := c.loadCounter(&ranges[i])
		if err != nil {
			return err
		}
		ranges[i].counter = newCounter(lsn)
	}
	return nil
}

func (c *Container) loadCounter(r *Range) (lsn uint64, err error) {
	lsn = r.Start
	value, closer, err := c.store.db.Get(c.space.counter(nil, r.Segment))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return 0, fmt.Errorf("read counter: %w", err)
	case len(value) != 8:
		return 0, errors.Join(fmt.Errorf("%w: counter of container %s", disk.ErrDamaged, c.RID), closer.Close())
	default:
		lsn = max(lsn, binary.BigEndian.Uint64(value))
		if err := closer.Close(); err != nil {
			return 0, fmt.Errorf("read counter: %w", err)
		}
	}
	for _, kind := range []byte{kindDocument, kindFeed} {
		last, err := c.lastKey(c.space.segment(nil, kind, r.Segment))
		if err != nil {
			return 0, err
		}
		if len(last) >= positionSize {
			lsn = max(lsn, decodeKeyPosition(last).lsn)
		}
	}
	return lsn, nil
}

// lastKey returns the last key with a prefix, nil if there is none.
func (c *Container) lastKey(prefix []byte) ([]byte, error) {
	it, err := c.store.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, fmt.Errorf("read last key: %w", err)
	}
	var key []byte
	if it.Last() {
		key = append(key, it.Key()...)
	}
	return key, it.Close()
}
