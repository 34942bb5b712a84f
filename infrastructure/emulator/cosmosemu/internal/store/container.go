package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/indexing"
	"feedbox/infrastructure/emulator/internal/disk"
)

// Definition contains the properties of a container that a client sets.
type Definition struct {
	ID           string          `json:"id"`
	Paths        []document.Path `json:"paths"` // of the partition key, one per level
	Hierarchical bool            `json:"hierarchical"`
	KeyVersion   int             `json:"keyVersion"`
	PlacedByV1   bool            `json:"placedByV1,omitempty"` // KeyVersion is 1; absent in older records, whose keys were placed as those of version 2
	DefaultTTL   int32           `json:"defaultTtl"`           // in seconds; 0: off, -1: on without a default
	Retention    int64           `json:"retention,omitempty"`  // of versions and deletions, in minutes; 0: none are kept
	Raw          string          `json:"raw"`                  // the members of the client's JSON, without braces and system properties
	// Computed properties exist in queries only.
	Computed []ComputedProperty `json:"computed,omitempty"`
	Unique   []UniqueKey        `json:"unique,omitempty"`
	// Indexing is the indexing policy that queries are checked against; nil: they are not, as in records from before the check.
	Indexing *indexing.Policy `json:"indexing,omitempty"`
}

// Hash returns the hash function of the partition key.
func (d *Definition) Hash() epk.Hash {
	switch {
	case d.Hierarchical:
		return epk.MultiHash
	case d.PlacedByV1:
		return epk.V1
	}
	return epk.V2
}

// ComputedProperty is a property whose value is computed by a query, SELECT VALUE ... FROM c.
type ComputedProperty struct {
	Name  string `json:"name"`
	Query string `json:"query"`
}

// Container holds documents. It is safe for concurrent use.
type Container struct {
	DatabaseRID string
	RID         string
	Link        string // of names, percent-encoded

	store *Store
	space keySpace
	rid   rid
	state atomic.Pointer[containerState] // replaced by holders of Store.turn
	gone  atomic.Bool                    // deleted

	// writing is held while a transaction is checked and applied to Pebble's memory. It is
	// not held during an fsync, except for a change of the container itself. It guards the
	// field below and the applied LSNs of the counters.
	writing sync.Mutex
	items   *filter // nil in a container that existed when the store was opened

	hints hints
}

// containerState is the part of a container that can be replaced. Immutable.
type containerState struct {
	Definition Definition `json:"definition"`
	Topology   *Topology  `json:"topology"`
	ETag       string     `json:"etag"`
	Modified   int64      `json:"modified"`            // Unix ms
	Undo       bool       `json:"undo,omitempty"`      // it keeps the previous state of documents since its creation
	Restoring  bool       `json:"restoring,omitempty"` // requests do not find it
}

type containerRecord struct {
	Database string `json:"database"`
	RID      string `json:"rid"`
	containerState
}

// Definition returns the container's current definition.
func (c *Container) Definition() *Definition { return &c.state.Load().Definition }

// Deleted reports whether a container was deleted.
func Deleted(c *Container) bool { return c.gone.Load() }

// Number increases with every new container.
func (c *Container) Number() uint32 { return uint32(c.space) }

// Topology returns the container's current physical partitions.
func (c *Container) Topology() *Topology { return c.state.Load().Topology }

// ETag returns the ETag of the container's properties.
func (c *Container) ETag() string { return c.state.Load().ETag }

// Modified is the time of the last change of the container's properties.
func (c *Container) Modified() time.Time { return time.UnixMilli(c.state.Load().Modified) }

// CreateContainer creates a container with a number of physical partitions. It returns
// ErrExists if the id is in use.
func (s *Store) CreateContainer(db *Database, def Definition, partitions int) (*Container, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if current, err := s.Database(db.ID); err != nil || current != db {
		return nil, fmt.Errorf("database %s: %w", db.ID, ErrNotFound)
	}
	if anyContainer(s, db, def.ID) != nil {
		return nil, fmt.Errorf("container %s: %w", def.ID, ErrExists)
	}
	r := db.rid.container(s.random.Uint32())
	for found(s.ContainerByRID(db, r.String())) {
		r = db.rid.container(s.random.Uint32())
	}
	state := containerState{
		Definition: def, Topology: newTopology(def.Hash(), partitions),
		ETag: s.randomETag(), Modified: s.now().UnixMilli(), Undo: s.undo,
	}
	number := s.nextID
	if err := s.put(containerKey(number), containerRecord{db.RID, r.String(), state}); err != nil {
		return nil, err
	}
	s.nextID++
	c := s.newContainer(number, db, r, state)
	c.items = newFilter()
	s.mu.Lock()
	db.containers[def.ID] = c
	s.mu.Unlock()
	s.remember()
	return c, nil
}

func (s *Store) newContainer(number keySpace, db *Database, r rid, state containerState) *Container {
	c := &Container{DatabaseRID: db.RID, RID: r.String(), Link: db.Link + "/colls/" + url.PathEscape(state.Definition.ID), store: s, space: number, rid: r}
	c.hints.seed = maphash.MakeSeed()
	c.state.Store(&state)
	return c
}

// ContainerByRID returns a container by resource id, or ErrNotFound.
func (s *Store) ContainerByRID(db *Database, text string) (*Container, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range db.containers {
		if c.RID == text && !c.Restoring() {
			return c, nil
		}
	}
	return nil, fmt.Errorf("container with resource id %s: %w", text, ErrNotFound)
}

// Container returns a container of a database, or ErrNotFound.
func (s *Store) Container(db *Database, id string) (*Container, error) {
	if c := anyContainer(s, db, id); c != nil && !c.Restoring() {
		return c, nil
	}
	return nil, fmt.Errorf("container %s: %w", id, ErrNotFound)
}

// anyContainer returns a container of a database, also while it is being restored; nil if there is none.
func anyContainer(s *Store, db *Database, id string) *Container {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return db.containers[id]
}

// Restoring reports whether the container is being restored.
func (c *Container) Restoring() bool { return c.state.Load().Restoring }

// Containers lists the containers of a database, oldest first, including those that are being
// restored.
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

// Replace gives the container a new definition.
func (c *Container) Replace(def Definition) error {
	return c.change(func(next *containerState, _ *pebble.Batch) error {
		next.Definition, next.ETag, next.Modified = def, c.store.randomETag(), c.store.now().UnixMilli()
		return nil
	})
}

// change stores a changed copy of the container's state together with the batch. No other
// change and no writer runs at the same time.
func (c *Container) change(change func(*containerState, *pebble.Batch) error) error {
	s := c.store
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.gone.Load() {
		return fmt.Errorf("container %s: %w", c.RID, ErrNotFound)
	}
	next := *c.state.Load()
	batch := s.db.NewBatch()
	defer batch.Close()
	if err := change(&next, batch); err != nil {
		return err
	}
	if err := commitRecord(s, batch, containerKey(c.space), containerRecord{c.DatabaseRID, c.RID, next}); err != nil {
		return err
	}
	c.state.Store(&next)
	s.remember()
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
	if err := s.db.Commit(batch); err != nil {
		return fmt.Errorf("delete container: %w", err)
	}
	s.mu.Lock()
	delete(db.containers, id)
	s.mu.Unlock()
	c.gone.Store(true)
	return nil
}

// drop adds the removal of the container and of all its keys to a batch.
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
		return fmt.Errorf("%w: container record: %w", disk.ErrDamaged, err)
	}
	r, err := parseRID(rec.RID)
	db := databases[rec.Database]
	if err != nil || db == nil || rec.Topology == nil || len(rec.Topology.Ranges) == 0 {
		return fmt.Errorf("%w: container record %s", disk.ErrDamaged, strings.TrimSpace(rec.RID))
	}
	if rec.Definition.KeyVersion == 1 && !rec.Definition.PlacedByV1 {
		return fmt.Errorf("%w: container %s was created by an earlier version of the emulator, which placed partition keys of version 1 differently: delete the data folder", ErrInvalid, rec.Definition.ID)
	}
	c := s.newContainer(number, db, r, rec.containerState)
	if err := c.loadCounters(); err != nil {
		return err
	}
	db.containers[rec.Definition.ID] = c
	return nil
}
