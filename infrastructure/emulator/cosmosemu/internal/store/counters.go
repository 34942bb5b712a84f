package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// The last LSN is that of the last document or feed entry. Only a removal can take
// these away, so only removals write it down.

func appendCounters(dst []byte, lsn uint64) []byte { return binary.BigEndian.AppendUint64(dst, lsn) }

// loadCounters finds where the container stands when a store is opened.
func (c *Container) loadCounters() error {
	value, closer, err := c.store.db.Get(c.space.counters(nil))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return fmt.Errorf("read counters: %w", err)
	case len(value) != 8:
		return errors.Join(fmt.Errorf("%w: counters of container %s", ErrCorrupt, c.RID), closer.Close())
	default:
		c.lsn = binary.BigEndian.Uint64(value)
		if err := closer.Close(); err != nil {
			return fmt.Errorf("read counters: %w", err)
		}
	}
	for segment := range c.Topology().NextSegment {
		for _, kind := range []byte{kindDocument, kindFeed} {
			last, err := c.lastKey(c.space.segment(nil, kind, segment))
			if err != nil {
				return err
			}
			if len(last) >= historySuffix {
				c.lsn = max(c.lsn, binary.BigEndian.Uint64(last[len(last)-historySuffix:]))
			}
		}
	}
	return nil
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
