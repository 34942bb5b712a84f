package store

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// Topology is the set of live physical partitions of a container, in the order of their
// bounds and without gaps. It is immutable.
type Topology struct {
	Version     int     `json:"version"` // increases with every split and merge
	Ranges      []Range `json:"ranges"`
	NextRange   int     `json:"nextRange"`
	NextSegment uint32  `json:"nextSegment"`
}

// Range is one physical partition.
type Range struct {
	ID      string   `json:"id"`
	Min     []byte   `json:"min"`
	Max     []byte   `json:"max"`
	Parents []string `json:"parents,omitempty"` // ids of all ancestors
	Segment uint32   `json:"segment"`
	Start   uint64   `json:"start,omitempty"` // its LSN when it was created
	// History lists the segments of the ancestors, which may contain changes of this range.
	History []uint32 `json:"history,omitempty"`
	// Restored lists the segments from before a restore. Their documents exist, but the change
	// feed omits them.
	Restored []uint32 `json:"restored,omitempty"`
	// Epoch counts the failovers in which the range has lost writes. It is the version of its
	// session tokens.
	Epoch int64 `json:"epoch,omitempty"`

	counter *counter // shared by all topologies that contain the range
}

// LSN returns the last log sequence number of the range that readers see.
func (r *Range) LSN() uint64 { return r.counter.visible.Load() }

// Bounds returns the effective partition keys of the range.
func (r *Range) Bounds() epk.Range { return epk.Range{Min: r.Min, Max: r.Max} }

func newTopology(hash epk.Hash, partitions int) *Topology {
	t := &Topology{Version: 1}
	for _, bounds := range hash.Divide(partitions) {
		t.add(bounds).counter = newCounter(0)
	}
	return t
}

// add appends a new range without a counter. The caller sorts the ranges.
func (t *Topology) add(bounds epk.Range) *Range {
	t.Ranges = append(t.Ranges, Range{ID: strconv.Itoa(t.NextRange), Min: bounds.Min, Max: bounds.Max, Segment: t.NextSegment})
	t.NextRange++
	t.NextSegment++
	return &t.Ranges[len(t.Ranges)-1]
}

// Find returns the live range with an id, or an error that wraps ErrRangeGone.
func (t *Topology) Find(id string) (*Range, error) {
	for i := range t.Ranges {
		if t.Ranges[i].ID == id {
			return &t.Ranges[i], nil
		}
	}
	return nil, fmt.Errorf("range %q: %w", id, ErrRangeGone)
}

// Locate returns the range that contains an effective partition key.
func (t *Topology) Locate(key []byte) *Range {
	i, found := slices.BinarySearchFunc(t.Ranges, key, func(r Range, key []byte) int { return bytes.Compare(r.Min, key) })
	if !found {
		i--
	}
	return &t.Ranges[max(i, 0)]
}

// split returns the topology in which a range is divided at a key (nil: in the middle).
func (t *Topology) split(hash epk.Hash, id string, at []byte) (*Topology, error) {
	parent, err := t.Find(id)
	if err != nil {
		return nil, err
	}
	bounds := parent.Bounds()
	if at == nil {
		at = hash.Middle(bounds)
	}
	if t.NextSegment+2 > maxSegments {
		return nil, fmt.Errorf("%w: the container has been split and merged %d times", ErrInvalid, t.Version-1)
	}
	if bytes.Compare(at, bounds.Min) <= 0 || !bounds.Contains(at) {
		return nil, fmt.Errorf("%w: split of range %s at %s, outside of it", ErrInvalid, id, epk.Format(at))
	}
	return t.replace([]*Range{parent}, epk.Range{Min: bounds.Min, Max: at}, epk.Range{Min: at, Max: bounds.Max}), nil
}

// merge returns the topology in which two adjacent ranges are joined.
func (t *Topology) merge(left, right string) (*Topology, error) {
	a, err := t.Find(left)
	if err != nil {
		return nil, err
	}
	b, err := t.Find(right)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(a.Max, b.Min) {
		return nil, fmt.Errorf("%w: ranges %s and %s are not adjacent in this order", ErrInvalid, left, right)
	}
	return t.replace([]*Range{a, b}, epk.Range{Min: a.Min, Max: b.Max}), nil
}

// replace returns a topology in which new ranges replace the given ones. No writer may be
// active.
func (t *Topology) replace(parents []*Range, bounds ...epk.Range) *Topology {
	next := &Topology{Version: t.Version + 1, NextRange: t.NextRange, NextSegment: t.NextSegment}
	var ancestors []string
	var history, restored []uint32
	var start uint64
	var epoch int64
	for _, p := range parents {
		start = max(start, p.counter.applied.Load())
		ancestors = append(append(ancestors, p.Parents...), p.ID)
		history = append(append(history, p.History...), p.Segment)
		restored, epoch = append(restored, p.Restored...), max(epoch, p.Epoch)
	}
	slices.Sort(history)
	slices.Sort(restored)
	for _, r := range t.Ranges {
		if !slices.ContainsFunc(parents, func(p *Range) bool { return p.ID == r.ID }) {
			next.Ranges = append(next.Ranges, r)
		}
	}
	for _, b := range bounds {
		r := next.add(b)
		r.Parents = dedup(slices.Clone(ancestors))
		r.History = slices.Compact(slices.Clone(history))
		r.Restored, r.Epoch = slices.Compact(slices.Clone(restored)), epoch
		r.Start, r.counter = start, newCounter(start)
	}
	slices.SortFunc(next.Ranges, func(a, b Range) int { return bytes.Compare(a.Min, b.Min) })
	return next
}

// dedup drops repeated ids, which occur because siblings share their ancestors.
func dedup(ids []string) []string {
	var out []string
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// Split divides a physical partition at a key, in the middle if at is nil. It moves no
// documents: see the package comment.
func (c *Container) Split(id string, at []byte) error {
	return c.changeTopology(func(t *Topology) (*Topology, error) { return t.split(c.Definition().Hash(), id, at) })
}

// Merge joins two adjacent physical partitions.
func (c *Container) Merge(left, right string) error {
	return c.changeTopology(func(t *Topology) (*Topology, error) { return t.merge(left, right) })
}

// changeTopology changes the ranges while no writer is active, and after all writes are
// visible: see the package comment.
func (c *Container) changeTopology(change func(*Topology) (*Topology, error)) error {
	return c.change(func(next *containerState, _ *pebble.Batch) (err error) {
		if err := c.settle(next.Topology); err != nil {
			return err
		}
		next.Topology, err = change(next.Topology)
		return err
	})
}

// settle makes all applied writes visible, because otherwise a position could pass a commit
// that becomes visible later. The caller holds writing.
func (c *Container) settle(t *Topology) error {
	for i := range t.Ranges {
		if n := t.Ranges[i].counter; !n.settled() {
			if err := c.store.acknowledge(n); err != nil {
				return err
			}
		}
	}
	return nil
}
