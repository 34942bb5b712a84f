package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// A container with a retention keeps every version and every deletion for that time, as the
// entries of the change feed's all-versions-and-deletes mode: JSON of the form
// {"current":{},"metadata":{},"previous":{}}. Other containers have none, because each
// version costs a copy of the document.

// ErrTooOld means that changes after a position are no longer kept.
var ErrTooOld = errors.New("the position lies before the retention of the change feed")

type versionEntry struct {
	millis       int64
	epk, encoded []byte
	text         []byte
}

func decodeVersion(b []byte) (e versionEntry, err error) {
	bad := fmt.Errorf("%w: version entry of %d bytes", disk.ErrDamaged, len(b))
	if len(b) < 9 || len(b) < 9+epkSize(b[8]) {
		return e, bad
	}
	e.millis = int64(binary.BigEndian.Uint64(b))
	rest := b[9:]
	e.epk, rest = rest[:epkSize(b[8])], rest[epkSize(b[8]):]
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return e, bad
	}
	e.encoded, e.text = rest[size:size+int(n)], rest[size+int(n):]
	return e, nil
}

// readVersions fills a page in all-versions-and-deletes mode.
func (c *Container) readVersions(v view, rng *Range, q *FeedQuery, page *FeedPage) error {
	oldest := c.store.now().Add(-c.retention()).UnixMilli()
	for _, segment := range rng.segments() {
		trimmed, err := c.trimmed(v, segment)
		if err != nil {
			return err
		}
		if q.After < trimmed {
			return ErrTooOld
		}
	}
	h, err := c.openHistory(v, rng.segments(), position{lsn: q.After + 1}, kindVersion)
	if err != nil {
		return err
	}
	window, start, last := q.window(rng), len(page.Documents), uint64(0)
	for ; h.valid() && err == nil; h.next() {
		// The page ends only between two LSNs, because it must not cut a transaction.
		if q.full(page, start) && h.lsn() != last {
			page.LSN = last
			return h.close()
		}
		var e versionEntry
		e, err = decodeVersion(h.value())
		switch {
		case err != nil, window != nil && !window.Contains(e.epk),
			q.Part != nil && !bytes.HasPrefix(e.encoded, q.Part.encoded):
			continue
		case e.millis < oldest: // the sweep has not removed it yet, but the answer must not depend on that
			err = ErrTooOld
			continue
		}
		if page.Count > 0 {
			page.Documents = append(page.Documents, ',')
		}
		page.Documents = append(page.Documents, e.text...)
		page.Count++
		last = h.lsn()
	}
	page.LSN = max(page.LSN, last)
	return errors.Join(err, h.close())
}

func (c *Container) retention() time.Duration {
	return time.Duration(c.Definition().Retention) * time.Minute
}

// trimmed returns the last LSN of a segment whose versions were removed.
func (c *Container) trimmed(v view, segment uint32) (uint64, error) {
	value, closer, err := v.Get(c.space.segment(nil, kindTrimmed, segment))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read retention: %w", disk.AsDamage(err))
	}
	lsn, ok := uint64(0), len(value) == 8
	if ok {
		lsn = binary.BigEndian.Uint64(value)
	}
	if !ok {
		return 0, errors.Join(fmt.Errorf("%w: retention of container %s", disk.ErrDamaged, c.RID), closer.Close())
	}
	return lsn, closer.Close()
}

// trim removes the versions that are older than the retention.
func (c *Container) trim() error {
	if c.retention() == 0 {
		return nil
	}
	oldest := c.store.now().Add(-c.retention()).UnixMilli()
	v := c.store.view()
	defer v.release()
	batch := c.store.db.NewBatch()
	defer batch.Close()
	for segment := range c.Topology().NextSegment {
		h, err := c.openHistory(v, []uint32{segment}, position{}, kindVersion)
		if err != nil {
			return err
		}
		for ; h.valid(); h.next() {
			e, err := decodeVersion(h.value())
			if err != nil || e.millis >= oldest {
				break
			}
			_ = batch.Delete(h.sources[0].Key(), nil) // adding to a batch does not fail
			_ = batch.Set(c.space.segment(nil, kindTrimmed, segment), binary.BigEndian.AppendUint64(nil, h.lsn()), nil)
		}
		if err := h.close(); err != nil {
			return err
		}
	}
	if batch.Empty() {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.gone.Load() {
		return nil
	}
	return c.store.db.Apply(batch, pebble.NoSync)
}
