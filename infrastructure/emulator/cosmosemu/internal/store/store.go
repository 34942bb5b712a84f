package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
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
	if err := s.open(cmp.Or(o.Dir, "cosmos"), fs, durable); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	go func() {
		defer close(s.swept)
		if every := cmp.Or(o.Sweep, 10*time.Second); every > 0 {
			s.sweepLoop(every)
		}
	}()
	return s, nil
}

func (s *Store) open(dir string, fs vfs.FS, durable bool) error {
	s.cache = pebble.NewCache(cacheSize)
	db, err := pebble.Open(dir, pebbleOptions(fs, durable, s.cache, s.log))
	if err != nil {
		s.cache.Unref()
		return asCorruption(err)
	}
	s.db = db
	if err := s.load(); err != nil {
		_ = db.Close() // the first error counts
		s.cache.Unref()
		return asCorruption(err)
	}
	if durable {
		s.durable = newDurability(db)
	}
	return nil
}

func (s *Store) load() error {
	version, closer, err := s.db.Get([]byte{keyVersion})
	if errors.Is(err, pebble.ErrNotFound) {
		return s.db.Set([]byte{keyVersion}, formatVersion, s.sync)
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
	if s.durable != nil {
		s.durable.close()
	}
	err := s.db.Close()
	s.cache.Unref()
	if err != nil {
		return fmt.Errorf("close store: %w", err)
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
	if s.durable == nil {
		return nil // published when it was applied
	}
	return s.durable.wait(c)
}

// asCorruption marks Pebble's corruption errors as ours.
func asCorruption(err error) error {
	if errors.Is(err, pebble.ErrCorruption) && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
