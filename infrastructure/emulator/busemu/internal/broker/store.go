package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"feedbox/infrastructure/emulator/busemu/internal/broker/intact"
)

// maxGroup is the size in bytes from which a group of ops is committed without
// looking for more.
const maxGroup = 1 << 20

// store makes ops durable. The committer goroutine takes everything that is pending,
// writes it into one Pebble batch and hands the batch to Pebble's log; the publisher
// goroutine awaits the fsync of each batch in turn, publishes its ops and finishes
// them. Up to four batches are under way at a time.
type store struct {
	fs     vfs.FS
	dir    string
	lock   *pebble.Lock
	db     *pebble.DB
	sync   bool
	logger *slog.Logger
	wake   chan struct{} // capacity 1
	stop   chan struct{} // closed by close
	groups chan group    // closed by the committer
	done   chan struct{} // closed by the publisher
	failed chan error    // capacity 1: the first failure

	mu      sync.Mutex
	pending []op
	refused error // why submit takes nothing more
}

// group is a batch on its way to the disk.
type group struct {
	batch *pebble.Batch // nil: nothing to write
	ops   []op
	err   error
}

func openStore(o *Options) (*store, error) {
	s := &store{
		sync: !o.NoSync, logger: o.Logger,
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
		groups: make(chan group, 4), done: make(chan struct{}),
		failed: make(chan error, 1),
	}
	s.fs, s.dir = o.FS, o.Dir
	if s.fs == nil {
		s.fs = vfs.Default
	}
	options := &pebble.Options{
		FS: s.fs,
		// The default format opens a log with a flipped bit and drops what follows.
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             pebbleLogger{o.Logger},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { o.Logger.Error("pebble: background work failed", "error", err) },
			DataCorruption:  func(info pebble.DataCorruptionInfo) { _ = s.fail(info.Details) },
		},
		MemTableSize: 32 << 20,
	}
	options.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	if err := s.open(options); err != nil {
		return nil, fmt.Errorf("open the broker's store in %s: %w", o.Dir, err)
	}
	return s, nil
}

// open locks the directory, looks for damage and opens the database.
func (s *store) open(options *pebble.Options) error {
	if err := s.fs.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	lock, err := pebble.LockDirectory(s.dir, s.fs)
	if err != nil {
		return fmt.Errorf("lock it (is another broker using it?): %w", err)
	}
	options.Lock = lock
	if err := intact.Check(s.fs, s.dir); err != nil {
		return errors.Join(err, lock.Close())
	}
	if err := s.startNewest(options.FormatMajorVersion); err != nil {
		return errors.Join(err, lock.Close())
	}
	db, err := pebble.Open(s.dir, options)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	s.db, s.lock = db, lock
	return nil
}

// startNewest marks a directory that is still empty as one of the newest format.
// Pebble would begin with the oldest and sync the directory for each format on the
// way, which doubles the time of a start.
func (s *store) startNewest(format pebble.FormatMajorVersion) error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != "LOCK" }) {
		return nil
	}
	marker, _, err := atomicfs.LocateMarker(s.fs, s.dir, "format-version")
	if err != nil {
		return err
	}
	return errors.Join(marker.Move(format.String()), marker.Close())
}

// start runs the two goroutines. Everything was loaded by now.
func (s *store) start() {
	go s.commit()
	go s.publish()
}

// submit queues o. After a failure or close it is refused by way of later.
func (s *store) submit(o op, later *callbacks) {
	s.mu.Lock()
	if err := s.refused; err != nil {
		s.mu.Unlock()
		later.call(func() { o.finish(err) })
		return
	}
	s.pending = append(s.pending, o)
	first := len(s.pending) == 1
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

func (s *store) commit() {
	defer close(s.groups)
	var spare []op
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		}
		s.mu.Lock()
		ops := s.pending
		s.pending = spare[:0]
		s.mu.Unlock()
		for rest := ops; len(rest) > 0; {
			var g group
			g, rest = s.write(rest)
			s.groups <- g
		}
		clear(ops)
		spare = ops
	}
}

// write commits as many of ops as fit in one group.
func (s *store) write(ops []op) (group, []op) {
	w := &writer{batch: s.db.NewBatch()}
	n := 0
	for n < len(ops) && w.batch.Len() < maxGroup {
		ops[n].write(w)
		n++
	}
	w.putSequences()
	g := group{batch: w.batch, ops: slices.Clone(ops[:n])}
	switch {
	case w.err != nil:
		g.err = w.err
	case w.batch.Empty():
		g.err = w.batch.Close()
		g.batch = nil
	case s.sync:
		g.err = s.db.ApplyNoSyncWait(w.batch, pebble.Sync)
	default:
		g.err = s.db.Apply(w.batch, pebble.NoSync)
	}
	return g, ops[n:]
}

func (s *store) publish() {
	defer close(s.done)
	for g := range s.groups {
		err := g.err
		if g.batch != nil && err == nil {
			if s.sync {
				err = g.batch.SyncWait()
			}
			err = errors.Join(err, g.batch.Close())
		}
		if err != nil {
			err = s.fail(err)
		}
		for _, o := range g.ops {
			var later callbacks
			if err == nil {
				o.publish(&later)
			}
			o.finish(err)
			later.run()
		}
	}
}

// fail refuses all further work: what is in memory may differ from what is stored.
func (s *store) fail(cause error) error {
	err := errorf(InternalError, "The broker's store failed and the broker takes no more work: %v", cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = err
		s.failed <- cause
		s.logger.Error("the broker's store failed", "error", cause)
	}
	return err
}

// refusal is why nothing more is taken, nil while all is well or in memory mode.
func (s *store) refusal() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// await returns when everything submitted before is durable and published.
func (s *store) await() {
	done := make(chan struct{})
	var later callbacks
	s.submit(&waiting{done: func(error) { close(done) }}, &later)
	later.run()
	<-done
}

// close finishes what was submitted, and what that leads to, and closes the store.
func (s *store) close() error {
	s.await()
	s.await()
	s.mu.Lock()
	if s.refused == nil {
		s.refused = closed()
	}
	s.mu.Unlock()
	s.await() // what came between is refused from here on
	close(s.stop)
	<-s.done
	return s.closeFiles()
}

// closeFiles closes the database and seals its files, so that damage done to them from
// now on is found.
func (s *store) closeFiles() error {
	err := s.db.Close()
	if err == nil {
		err = intact.Seal(s.fs, s.dir)
	}
	return errors.Join(err, s.lock.Close())
}

// pebbleLogger passes on Pebble's complaints. Pebble calls Fatalf when it cannot go on
// without losing acknowledged data, and expects it not to return.
type pebbleLogger struct{ logger *slog.Logger }

func (l pebbleLogger) Infof(string, ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.logger.Error("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	panic("broker: the store cannot go on: " + fmt.Sprintf(format, args...))
}
