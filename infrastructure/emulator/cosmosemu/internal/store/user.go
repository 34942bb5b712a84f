package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/internal/disk"
)

// User is a user of a database with its permissions. It is immutable: a change creates a
// new one.
type User struct {
	ID          string       `json:"id"`
	RID         string       `json:"rid"`
	Database    string       `json:"database"` // resource id
	ETag        string       `json:"etag"`
	Modified    int64        `json:"modified"` // Unix ms
	Permissions []Permission `json:"permissions,omitempty"`
}

// Permission allows a user to access a container or an item.
type Permission struct {
	ID       string          `json:"id"`
	RID      string          `json:"rid"`
	ETag     string          `json:"etag"`
	Modified int64           `json:"modified"` // Unix ms
	Mode     string          `json:"mode"`
	Resource string          `json:"resource"` // link, as the client wrote it
	Key      json.RawMessage `json:"key,omitempty"`
}

// Permission returns a permission by id, or ErrNotFound.
func (u *User) Permission(id string) (*Permission, error) {
	for i := range u.Permissions {
		if p := &u.Permissions[i]; p.ID == id || p.RID == id {
			return p, nil
		}
	}
	return nil, fmt.Errorf("permission %s of user %s: %w", id, u.ID, ErrNotFound)
}

// Users lists the users of a database by id.
func (s *Store) Users(db *Database) []*User {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(db.users), func(a, b *User) int { return strings.Compare(a.ID, b.ID) })
}

// User returns a user by id or resource id, or ErrNotFound.
func (s *Store) User(db *Database, id string) (*User, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if u, ok := db.users[id]; ok {
		return u, nil
	}
	for _, u := range db.users {
		if u.RID == id {
			return u, nil
		}
	}
	return nil, fmt.Errorf("user %s: %w", id, ErrNotFound)
}

// CreateUser creates a user. It returns ErrExists if the id is in use.
func (s *Store) CreateUser(db *Database, id string) (*User, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if _, err := s.User(db, id); err == nil {
		return nil, fmt.Errorf("user %s: %w", id, ErrExists)
	}
	r := rid(binary.BigEndian.AppendUint32(slices.Clone(db.rid), s.random.Uint32()&^(1<<31))) // the resource ids of containers have this bit set
	return s.putUser(db, "", &User{ID: id, RID: r.String(), Database: db.RID})
}

// ChangeUser calls change with a copy of a user, which then replaces the user. change may
// change the id. If it fails, the user stays unchanged and its error is returned.
func (s *Store) ChangeUser(db *Database, id string, change func(*User) error) (*User, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	old, err := s.User(db, id)
	if err != nil {
		return nil, err
	}
	next := *old
	next.Permissions = slices.Clone(old.Permissions)
	if err := change(&next); err != nil {
		return nil, err
	}
	if taken, err := s.User(db, next.ID); err == nil && taken != old {
		return nil, fmt.Errorf("user %s: %w", next.ID, ErrExists)
	}
	return s.putUser(db, old.ID, &next)
}

// StampPermission gives a permission of a user a new ETag, and a resource id if it has
// none. It must be called inside ChangeUser.
func (s *Store) StampPermission(u *User, p *Permission) {
	p.ETag, p.Modified = s.randomETag(), s.now().UnixMilli()
	if p.RID == "" {
		r, _ := parseRID(u.RID) // this package created it
		p.RID = rid(binary.BigEndian.AppendUint64(r, s.random.Uint64())).String()
	}
}

// putUser stores a user instead of the one named old. The caller holds turn.
func (s *Store) putUser(db *Database, old string, u *User) (*User, error) {
	if current, err := s.Database(db.ID); err != nil || current != db {
		return nil, fmt.Errorf("database %s: %w", db.ID, ErrNotFound)
	}
	u.ETag, u.Modified = s.randomETag(), s.now().UnixMilli()
	if err := s.put(userKey(u.RID), u); err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(db.users, old)
	db.users[u.ID] = u
	s.mu.Unlock()
	return u, nil
}

// DeleteUser removes a user and its permissions.
func (s *Store) DeleteUser(db *Database, id string) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	u, err := s.User(db, id)
	if err != nil {
		return err
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	_ = batch.Delete(userKey(u.RID), nil) // adding to a batch does not fail
	if err := s.db.Commit(batch); err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	s.mu.Lock()
	delete(db.users, u.ID)
	s.mu.Unlock()
	return nil
}

func loadUser(value []byte, databases map[string]*Database) error {
	var u User
	if err := json.Unmarshal(value, &u); err != nil {
		return fmt.Errorf("%w: user record: %w", disk.ErrDamaged, err)
	}
	db := databases[u.Database]
	if db == nil {
		return fmt.Errorf("%w: user record %s without its database", disk.ErrDamaged, u.RID)
	}
	db.users[u.ID] = &u
	return nil
}

func userKey(rid string) []byte { return append([]byte{keyUser}, rid...) }
