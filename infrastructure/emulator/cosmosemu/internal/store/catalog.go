package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// Database is a named set of containers. Its fields do not change.
type Database struct {
	ID      string
	RID     string
	ETag    string
	Created time.Time
	Link    string // of names, percent-encoded

	rid        rid
	containers map[string]*Container // guarded by Store.mu, like the next one
	users      map[string]*User
}

type databaseRecord struct {
	ID      string `json:"id"`
	RID     string `json:"rid"`
	ETag    string `json:"etag"`
	Created int64  `json:"created"` // Unix ms
}

// CreateDatabase creates a database. It returns ErrExists if the id is in use.
func (s *Store) CreateDatabase(id string) (*Database, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if _, err := s.Database(id); err == nil {
		return nil, fmt.Errorf("database %s: %w", id, ErrExists)
	}
	r := databaseRID(s.random.Uint32())
	for found(s.DatabaseByRID(r.String())) {
		r = databaseRID(s.random.Uint32())
	}
	rec := databaseRecord{ID: id, RID: r.String(), ETag: s.randomETag(), Created: s.now().UnixMilli()}
	if err := s.put(databaseKey(r), rec); err != nil {
		return nil, err
	}
	db := newDatabase(rec, r)
	s.mu.Lock()
	s.databases[id] = db
	s.mu.Unlock()
	return db, nil
}

func newDatabase(rec databaseRecord, r rid) *Database {
	return &Database{
		ID: rec.ID, RID: rec.RID, ETag: rec.ETag, Created: time.UnixMilli(rec.Created),
		Link: "dbs/" + url.PathEscape(rec.ID),
		rid:  r, containers: make(map[string]*Container), users: make(map[string]*User),
	}
}

// found reports whether a look-up has found anything.
func found[T any](_ *T, err error) bool { return err == nil }

// Database returns a database by id, or ErrNotFound.
func (s *Store) Database(id string) (*Database, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if db, ok := s.databases[id]; ok {
		return db, nil
	}
	return nil, fmt.Errorf("database %s: %w", id, ErrNotFound)
}

// DatabaseByRID returns a database by resource id, or ErrNotFound.
func (s *Store) DatabaseByRID(text string) (*Database, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, db := range s.databases {
		if db.RID == text {
			return db, nil
		}
	}
	return nil, fmt.Errorf("database with resource id %s: %w", text, ErrNotFound)
}

// Databases lists all databases, oldest first.
func (s *Store) Databases() []*Database {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*Database, 0, len(s.databases))
	for _, db := range s.databases {
		out = append(out, db)
	}
	slices.SortFunc(out, func(a, b *Database) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// DeleteDatabase removes a database, its containers, their offers and its users.
func (s *Store) DeleteDatabase(id string) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	db, err := s.Database(id)
	if err != nil {
		return err
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	removed := s.Containers(db)
	for _, c := range removed {
		if err := c.drop(batch); err != nil {
			return err
		}
	}
	if err := batch.Delete(databaseKey(db.rid), nil); err != nil {
		return fmt.Errorf("delete database: %w", err)
	}
	rids := []string{db.RID}
	for _, c := range removed {
		rids = append(rids, c.RID)
	}
	if err := s.dropOffers(batch, rids); err != nil {
		return err
	}
	for _, u := range s.Users(db) {
		_ = batch.Delete(userKey(u.RID), nil) // adding to a batch does not fail
	}
	if err := s.db.Commit(batch); err != nil {
		return fmt.Errorf("delete database: %w", err)
	}
	s.mu.Lock()
	delete(s.databases, id)
	s.mu.Unlock()
	for _, c := range removed {
		c.gone.Store(true)
	}
	return nil
}

// loadCatalog reads all records into memory.
func (s *Store) loadCatalog() error {
	byRID := make(map[string]*Database)
	err := s.each(keyDatabase, func(_, value []byte) error {
		var rec databaseRecord
		if err := json.Unmarshal(value, &rec); err != nil {
			return fmt.Errorf("%w: database record: %w", disk.ErrDamaged, err)
		}
		r, err := parseRID(rec.RID)
		if err != nil {
			return fmt.Errorf("%w: %w", disk.ErrDamaged, err)
		}
		db := newDatabase(rec, r)
		s.databases[rec.ID], byRID[rec.RID] = db, db
		return nil
	})
	if err != nil {
		return err
	}
	err = s.each(keyContainer, func(key, value []byte) error {
		number := keySpace(binary.BigEndian.Uint32(key[1:]))
		s.nextID = max(s.nextID, number+1)
		return s.loadContainer(number, value, byRID)
	})
	if err != nil {
		return err
	}
	if err := s.each(keyUser, func(_, value []byte) error { return loadUser(value, byRID) }); err != nil {
		return err
	}
	return s.each(keyOffer, func(_, value []byte) error { return s.loadOffer(value) })
}

// each calls fn for every key of a kind.
func (s *Store) each(kind byte, fn func(key, value []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		if err := fn(it.Key(), it.Value()); err != nil {
			_ = it.Close() // the first error is the one to report
			return err
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	return nil
}

// put writes a catalog record and waits for the disk.
func (s *Store) put(key []byte, record any) error {
	batch := s.db.NewBatch()
	defer batch.Close()
	return commitRecord(s, batch, key, record)
}

// commitRecord adds a catalog record to the batch, writes it and waits for the disk.
func commitRecord(s *Store, batch *pebble.Batch, key []byte, record any) error {
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode catalog record: %w", err)
	}
	_ = batch.Set(key, value, nil) // adding to a batch does not fail
	if err := s.db.Commit(batch); err != nil {
		return fmt.Errorf("write catalog record: %w", err)
	}
	return nil
}

func databaseKey(r rid) []byte { return append([]byte{keyDatabase}, r...) }

func containerKey(n keySpace) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyContainer}, uint32(n))
}

// randomETag returns an ETag for a catalog record. The caller holds turn.
func (s *Store) randomETag() string {
	at := &pointer{written: position{lsn: s.random.Uint64()}, stamp: stamp{millis: s.now().UnixMilli()}}
	return string(appendETag(nil, rid(binary.BigEndian.AppendUint32(nil, s.random.Uint32())), at))
}
