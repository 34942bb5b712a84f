package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion marks the layout of keys.go; a store of another one is refused.
var formatVersion = []byte("feedbox-cosmosemu-1")

// Options says where and how to keep the data. The zero value keeps it in memory.
type Options struct {
	Dir    string           // on disk, with fsync before a write is acknowledged; "" keeps the data in memory
	FS     vfs.FS           // file system of Dir, default the disk; setting it implies durability even if it is vfs.NewMem
	Now    func() time.Time // default time.Now
	Random *rand.Rand       // source of resource ids, default seeded at random
	Logger *slog.Logger     // default none
	Past   time.Duration    // how far back Store.Past reaches, default not at all
	Sweep  time.Duration    // how often space of expired documents is looked for, default 10s, negative never
}

// Store is safe for concurrent use.
type Store struct {
	db      *pebble.DB
	cache   *pebble.Cache
	durable *durability          // nil in memory mode
	sync    *pebble.WriteOptions // of catalog changes: with fsync, unless in memory
	now     func() time.Time
	log     *slog.Logger

	past    past
	seal    func() error          // marks the closed files, nil in memory mode
	damaged atomic.Pointer[error] // set when Pebble finds corrupt data

	turn   chan struct{} // holds one token while the catalog is being changed
	random *rand.Rand    // used by the holder of turn
	nextID keySpace      // used by the holder of turn

	mu        sync.RWMutex // guards the maps below and those of databases
	databases map[string]*Database
	offers    map[string]*Offer

	stop  chan struct{} // closed by Close
	swept chan struct{} // closed when the sweeper has ended
}

// Open opens or creates a store. An error that wraps ErrCorrupt means that the
// files are damaged; nothing is served from them.
func Open(o Options) (*Store, error) {
	durable := o.Dir != "" || o.FS != nil
	fs := o.FS
	if fs == nil {
		fs = vfs.Default
		if !durable {
			fs = newMemFS()
		}
	}
	s := &Store{
		sync:      pebble.NoSync,
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
	if durable {
		s.sync = pebble.Sync
	}
	s.past.reach = o.Past
	if err := s.open(cmp.Or(o.Dir, "cosmos"), fs, durable); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
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

func (s *Store) open(dir string, fs vfs.FS, durable bool) error {
	hasTables := false
	if durable {
		var err error
		if hasTables, err = inspect(fs, dir); err != nil {
			return err
		}
	}
	s.cache = pebble.NewCache(cacheSize)
	options := pebbleOptions(fs, durable, s.cache, s.log)
	options.EventListener = &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
		err := fmt.Errorf("%w: %s: %w", ErrCorrupt, info.Path, info.Details)
		s.damaged.CompareAndSwap(nil, &err)
	}}
	db, err := pebble.Open(dir, options)
	if err != nil {
		s.cache.Unref()
		return asCorruption(err)
	}
	s.db = db
	if err := s.load(hasTables); err != nil {
		_ = db.Close() // the first error counts
		s.cache.Unref()
		return asCorruption(err)
	}
	if durable {
		s.seal = func() error { return putSeal(fs, dir) }
		if err := breakSeal(fs, dir); err != nil {
			_ = db.Close() // the first error counts
			s.cache.Unref()
			return err
		}
		s.durable = newDurability(db)
	}
	return nil
}

func (s *Store) load(hasTables bool) error {
	version, closer, err := s.db.Get([]byte{keyVersion})
	if errors.Is(err, pebble.ErrNotFound) {
		if hasTables {
			return fmt.Errorf("%w: there are tables, but none is in the manifest", ErrCorrupt)
		}
		if err := s.db.Set([]byte{keyVersion}, formatVersion, s.sync); err != nil {
			return err
		}
		// Pebble writes the first log of a new database in its oldest format, which
		// cannot tell damage from the end: start another one.
		return s.db.Flush()
	}
	if err != nil {
		return err
	}
	same := bytes.Equal(version, formatVersion)
	found := string(version)
	if err := closer.Close(); err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%w: the data directory has format %q, this version reads %q: use an empty directory", ErrInvalid, found, formatVersion)
	}
	return s.loadCatalog()
}

// Close stops the sweeper and closes the files. No other call may be running.
func (s *Store) Close() error {
	close(s.stop)
	<-s.swept
	s.past.close()
	if s.durable != nil {
		s.durable.close()
	}
	var err error
	if s.durable != nil && s.Damaged() == nil {
		err = s.db.Flush() // then files are as long as their directory says: a cut is found
	}
	err = errors.Join(err, s.db.Close())
	s.cache.Unref()
	if err == nil && s.seal != nil && s.Damaged() == nil {
		err = s.seal()
	}
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Damaged returns an error that wraps ErrCorrupt once corrupt data has been met:
// nothing must be served from then on.
func (s *Store) Damaged() error {
	if err := s.damaged.Load(); err != nil {
		return *err
	}
	return nil
}

// Now is the store's clock.
func (s *Store) Now() time.Time { return s.now() }

func (s *Store) view() view {
	if s.durable != nil {
		return s.durable.view()
	}
	return view{Reader: s.db}
}

// acknowledge returns when all that c has applied is visible and, on disk, durable.
func (s *Store) acknowledge(c *Container) error {
	if s.durable != nil { // else it was published when it was applied
		if err := s.durable.wait(c); err != nil {
			return err
		}
	}
	s.remember()
	return nil
}

// asCorruption marks Pebble's corruption errors as ours.
func asCorruption(err error) error {
	if errors.Is(err, pebble.ErrCorruption) && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
