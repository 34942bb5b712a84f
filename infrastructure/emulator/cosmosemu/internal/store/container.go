package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
)

// Definition is what a client says about a container.
type Definition struct {
	ID           string          `json:"id"`
	Paths        []document.Path `json:"paths"` // of the partition key, one per level
	Hierarchical bool            `json:"hierarchical"`
	KeyVersion   int             `json:"keyVersion"`
	DefaultTTL   int32           `json:"defaultTtl"` // 0 off, -1 on without default, else seconds
	Raw          string          `json:"raw"`        // the members of the client's JSON, without braces and system properties
}

// Container holds documents. It is safe for concurrent use.
type Container struct {
	DatabaseRID string
	RID         string

	store *Store
	space keySpace
	rid   rid
	state atomic.Pointer[containerState] // replaced by holders of Store.turn
	gone  atomic.Bool                    // deleted

	applied atomic.Uint64 // last LSN written to Pebble
	visible atomic.Uint64 // last LSN readers see

	// writing is held while a transaction is judged and applied to Pebble's
	// memory, never during an fsync. It guards the fields below.
	writing sync.Mutex
	lsn     uint64
	items   *filter // nil in a container that was there when the store was opened
}

// containerState is the part of a container that can be replaced. Immutable.
type containerState struct {
	Definition Definition `json:"definition"`
	Topology   *Topology  `json:"topology"`
	ETag       string     `json:"etag"`
	Modified   int64      `json:"modified"` // Unix ms
}

type containerRecord struct {
	Database string `json:"database"`
	RID      string `json:"rid"`
	containerState
}

// Definition returns the container's current definition.
func (c *Container) Definition() *Definition { return &c.state.Load().Definition }

// Topology returns the container's current physical partitions.
func (c *Container) Topology() *Topology { return c.state.Load().Topology }

// ETag returns the ETag of the container's properties.
func (c *Container) ETag() string { return c.state.Load().ETag }

// Modified is the time of the last change of the container's properties.
func (c *Container) Modified() time.Time { return time.UnixMilli(c.state.Load().Modified) }

// LSN is the last committed log sequence number that readers see.
func (c *Container) LSN() uint64 { return c.visible.Load() }

// publish lets readers know of commits up to lsn.
func (c *Container) publish(lsn uint64) {
	for {
		old := c.visible.Load()
		if old >= lsn || c.visible.CompareAndSwap(old, lsn) {
			return
		}
	}
}

// CreateContainer makes a container with a number of physical partitions.
// ErrExists if the database has one of that id.
func (s *Store) CreateContainer(db *Database, def Definition, partitions int) (*Container, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if current, err := s.Database(db.ID); err != nil || current != db {
		return nil, fmt.Errorf("database %s: %w", db.ID, ErrNotFound)
	}
	if _, err := s.Container(db, def.ID); err == nil {
		return nil, fmt.Errorf("container %s: %w", def.ID, ErrExists)
	}
	r := db.rid.container(s.random.Uint32())
	for s.containerRIDTaken(db, r.String()) {
		r = db.rid.container(s.random.Uint32())
	}
	state := containerState{
		Definition: def, Topology: newTopology(partitions),
		ETag: s.randomETag(), Modified: s.now().UnixMilli(),
	}
	number := s.nextID
	if err := s.put(containerKey(number), containerRecord{db.RID, r.String(), state}); err != nil {
		return nil, err
	}
	s.nextID++
	c := s.newContainer(number, db.RID, r, state)
	c.items = newFilter()
	s.mu.Lock()
	db.containers[def.ID] = c
	s.mu.Unlock()
	return c, nil
}

func (s *Store) newContainer(number keySpace, database string, r rid, state containerState) *Container {
	c := &Container{DatabaseRID: database, RID: r.String(), store: s, space: number, rid: r}
	c.state.Store(&state)
	return c
}

func (s *Store) containerRIDTaken(db *Database, text string) bool {
	return slices.ContainsFunc(s.Containers(db), func(c *Container) bool { return c.RID == text })
}

// Container finds a container of a database. ErrNotFound if there is none.
func (s *Store) Container(db *Database, id string) (*Container, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c, ok := db.containers[id]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("container %s: %w", id, ErrNotFound)
}

// Containers lists the containers of a database, oldest first.
func (s *Store) Containers(db *Database) []*Container {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*Container, 0, len(db.containers))
	for _, c := range db.containers {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Container) int { return int(int64(a.space) - int64(b.space)) })
	return out
}

// ReplaceContainer gives a container a new definition.
func (s *Store) ReplaceContainer(c *Container, def Definition) error {
	return s.changeContainer(c, func(next *containerState) error {
		next.Definition, next.ETag, next.Modified = def, s.randomETag(), s.now().UnixMilli()
		return nil
	})
}

// Split cuts the physical partition id at a key, in the middle if at is nil.
// No document is moved: see the package comment.
func (s *Store) Split(c *Container, id string, at []byte) error {
	return s.changeContainer(c, func(next *containerState) (err error) {
		next.Topology, err = next.Topology.split(id, at)
		return err
	})
}

// Merge joins two neighbouring physical partitions.
func (s *Store) Merge(c *Container, left, right string) error {
	return s.changeContainer(c, func(next *containerState) (err error) {
		next.Topology, err = next.Topology.merge(left, right)
		return err
	})
}

func (s *Store) changeContainer(c *Container, change func(*containerState) error) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if c.gone.Load() {
		return fmt.Errorf("container %s: %w", c.RID, ErrNotFound)
	}
	next := *c.state.Load()
	if err := change(&next); err != nil {
		return err
	}
	if err := s.put(containerKey(c.space), containerRecord{c.DatabaseRID, c.RID, next}); err != nil {
		return err
	}
	c.state.Store(&next)
	return nil
}

// DeleteContainer removes a container, its documents and its offer.
func (s *Store) DeleteContainer(db *Database, id string) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	c, err := s.Container(db, id)
	if err != nil {
		return err
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	if err := errors.Join(c.drop(batch), s.dropOffers(batch, []string{c.RID})); err != nil {
		return err
	}
	if err := batch.Commit(s.sync); err != nil {
		return fmt.Errorf("delete container: %w", err)
	}
	s.mu.Lock()
	delete(db.containers, id)
	s.mu.Unlock()
	c.gone.Store(true)
	return nil
}

// drop adds the removal of all that belongs to the container to a batch.
func (c *Container) drop(batch *pebble.Batch) error {
	from, to := c.space.span()
	if err := batch.DeleteRange(from, to, nil); err != nil {
		return fmt.Errorf("delete container: %w", err)
	}
	if err := batch.Delete(containerKey(c.space), nil); err != nil {
		return fmt.Errorf("delete container: %w", err)
	}
	return nil
}

func (s *Store) loadContainer(number keySpace, value []byte, databases map[string]*Database) error {
	var rec containerRecord
	if err := json.Unmarshal(value, &rec); err != nil {
		return fmt.Errorf("%w: container record: %w", ErrCorrupt, err)
	}
	r, err := parseRID(rec.RID)
	db := databases[rec.Database]
	if err != nil || db == nil || rec.Topology == nil || len(rec.Topology.Ranges) == 0 {
		return fmt.Errorf("%w: container record %s", ErrCorrupt, strings.TrimSpace(rec.RID))
	}
	c := s.newContainer(number, rec.Database, r, rec.containerState)
	if err := c.loadCounters(); err != nil {
		return err
	}
	c.applied.Store(c.lsn)
	c.visible.Store(c.lsn)
	db.containers[rec.Definition.ID] = c
	return nil
}
