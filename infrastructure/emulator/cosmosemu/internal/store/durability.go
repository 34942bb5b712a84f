package store

import (
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// view is a consistent state to read from. Release it exactly once.
type view struct {
	pebble.Reader
	snapshot *snapshot // nil in memory mode
}

func (v view) release() {
	if v.snapshot != nil {
		v.snapshot.release()
	}
}

// snapshot is a Pebble snapshot that is closed with its last reference.
type snapshot struct {
	*pebble.Snapshot
	mu   sync.Mutex // guards refs
	refs int
}

func (s *snapshot) acquire() {
	s.mu.Lock()
	s.refs++
	s.mu.Unlock()
}

func (s *snapshot) release() {
	s.mu.Lock()
	s.refs--
	last := s.refs == 0
	s.mu.Unlock()
	if last {
		_ = s.Close() // Close fails only if called twice
	}
}

// durability makes commits durable in groups and publishes durable states to readers.
//
// A writer applies its changes to Pebble without waiting for the disk and then calls wait.
// The first caller of a round leads it. When the fsync of the previous round has ended, the
// leader closes the round, takes a snapshot, fsyncs the log, publishes the snapshot to
// readers and wakes the other callers of the round. The log is sequential, so the fsync
// covers everything that was applied before it. The snapshot is older than the fsync, because
// otherwise readers could see commits that are not durable yet.
type durability struct {
	db   *disk.DB
	turn chan struct{} // holds one token while a leader works

	mu        sync.Mutex // guards the fields below
	next      *round     // accepts further callers; nil if there is none
	published *snapshot
}

type round struct {
	done    chan struct{} // closed by the leader
	err     error         // read after done
	touched []*counter
}

func newDurability(db *disk.DB) *durability {
	return &durability{
		db:        db,
		turn:      make(chan struct{}, 1),
		published: &snapshot{Snapshot: db.NewSnapshot(), refs: 1},
	}
}

// wait blocks until all transactions that c has counted are durable and visible.
func (d *durability) wait(c *counter) error {
	d.mu.Lock()
	r := d.next
	leads := r == nil
	if leads {
		r = &round{done: make(chan struct{})}
		d.next = r
	}
	r.touched = append(r.touched, c)
	d.mu.Unlock()
	if leads {
		d.lead(r)
	}
	<-r.done
	return r.err
}

func (d *durability) lead(r *round) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.mu.Lock()
	d.next = nil
	d.mu.Unlock()

	seen := make([]uint64, len(r.touched))
	for i, c := range r.touched {
		seen[i] = c.applied.Load() // read before the snapshot, which may contain later commits
	}
	snap := &snapshot{Snapshot: d.db.NewSnapshot(), refs: 1}
	if err := d.db.Sync(); err != nil {
		r.err = fmt.Errorf("fsync: %w", err)
		snap.release()
		close(r.done)
		return
	}
	d.publish(snap)
	for i, c := range r.touched {
		c.publish(seen[i])
	}
	close(r.done)
}

func (d *durability) publish(snap *snapshot) {
	d.mu.Lock()
	old := d.published
	d.published = snap
	d.mu.Unlock()
	old.release()
}

// view returns the last published state.
func (d *durability) view() view {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.published.acquire()
	return view{Reader: d.published.Snapshot, snapshot: d.published}
}

func (d *durability) close() {
	d.published.release()
}
