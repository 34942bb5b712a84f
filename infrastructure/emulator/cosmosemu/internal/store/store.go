package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/internal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion identifies the layout of keys.go. Open refuses a store with another one.
const formatVersion = "feedbox-cosmosemu-2"

// Options configure a store. The zero value keeps the data in memory.
type Options struct {
	Dir    string           // on disk, with fsync before a write is acknowledged; "" keeps the data in memory
	FS     vfs.FS           // file system of Dir, default the operating system's
	Now    func() time.Time // default time.Now
	Random *rand.Rand       // source of resource ids, default seeded at random
	Logger *slog.Logger     // default none
	Past   time.Duration    // how far back Store.Past reaches; 0 disables it
	Undo   bool             // new containers keep what Lose and BeginRestore need
	Sweep  time.Duration    // interval between sweeps of expired documents, default 10s, negative never
}

// Store is safe for concurrent use.
type Store struct {
	db      *disk.DB
	durable *durability // nil in memory mode
	now     func() time.Time
	log     *slog.Logger
	past    past
	undo    bool

	turn   chan struct{} // holds one token while the catalog is being changed
	random *rand.Rand    // used by the holder of turn
	nextID keySpace      // used by the holder of turn

	mu        sync.RWMutex // guards the maps below and those of databases
	databases map[string]*Database
	offers    map[string]*Offer

	stop  chan struct{} // closed by Close
	swept chan struct{} // closed when the sweeper has ended
}

// Open opens or creates a store. The error wraps disk.ErrDamaged if the files are damaged.
func Open(o Options) (*Store, error) {
	durable := o.Dir != ""
	fs := o.FS
	if !durable {
		fs = newMemFS()
	}
	s := &Store{
		now:       o.Now,
		log:       o.Logger,
		random:    o.Random,
		turn:      make(chan struct{}, 1),
		databases: make(map[string]*Database),
		offers:    make(map[string]*Offer),
		stop:      make(chan struct{}),
		swept:     make(chan struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	s.past.reach, s.undo = o.Past, o.Undo
	var err error
	if s.db, err = disk.Open(&disk.Options{
		Dir: cmp.Or(o.Dir, "cosmos"), FS: fs, Memory: !durable, Version: formatVersion, Logger: s.log, Pebble: tuning(durable),
	}); err != nil {
		return nil, err
	}
	if err := s.loadCatalog(); err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(disk.AsDamage(err), s.db.Close()))
	}
	if durable {
		s.durable = newDurability(s.db)
	}
	s.remember()
	go func() {
		defer close(s.swept)
		if every := cmp.Or(o.Sweep, 10*time.Second); every > 0 {
			s.sweepLoop(every)
		}
	}()
	return s, nil
}

// Close stops the sweeper and closes the files. No other call may run at the same time.
func (s *Store) Close() error {
	close(s.stop)
	<-s.swept
	s.past.close()
	if s.durable != nil {
		s.durable.close()
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Err returns the error after which the store must no longer be used: a read found corrupt
// data, or a write could not be made durable. It is nil before that.
func (s *Store) Err() error { return s.db.Err() }

// Failed receives the error of Err once.
func (s *Store) Failed() <-chan error { return s.db.Failed() }

// Now is the store's clock.
func (s *Store) Now() time.Time { return s.now() }

func (s *Store) view() view {
	if s.durable != nil {
		return s.durable.view()
	}
	return view{Reader: s.db}
}

// acknowledge blocks until all transactions that c has counted are visible and, on disk,
// durable.
func (s *Store) acknowledge(c *counter) error {
	if s.durable != nil { // otherwise they became visible when they were applied
		if err := s.durable.wait(c); err != nil {
			return err
		}
	}
	s.remember()
	return nil
}

// Errors that callers distinguish. All others are storage failures.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrRangeGone = errors.New("the partition key range is gone")
	ErrInvalid   = errors.New("invalid")
	ErrNotUnique = errors.New("unique index constraint violation")
)
