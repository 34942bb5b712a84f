package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// maxGroup is the size in bytes at which a group of ops is committed without adding others.
const maxGroup = 1 << 20

// store makes ops durable. The committer goroutine takes all pending ops, writes them into one
// Pebble batch and passes the batch to Pebble's log. The publisher goroutine waits for the
// fsync of each batch in turn, publishes its ops and finishes them. Up to four batches are in
// flight.
type store struct {
	db     *disk.DB
	sync   bool
	wake   chan struct{} // capacity 1
	stop   chan struct{} // closed by close
	groups chan group    // closed by the committer
	done   chan struct{} // closed by the publisher

	mu      sync.Mutex // guards the fields below
	pending []op
	closed  bool // submit refuses ops
}

// group is a batch in flight to the disk.
type group struct {
	batch *pebble.Batch // nil: nothing to write
	ops   []op
	err   error
}

func openStore(o *Options) (*store, error) {
	tuning := &pebble.Options{MemTableSize: 32 << 20}
	tuning.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := disk.Open(&disk.Options{Dir: o.Dir, FS: o.FS, Version: storeVersion, Logger: o.Logger, Pebble: tuning})
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	return &store{
		db: db, sync: !o.NoSync,
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
		groups: make(chan group, 4), done: make(chan struct{}),
	}, nil
}

// start runs the two goroutines. Loading must have ended.
func (s *store) start() {
	go s.commit()
	go s.publish()
}

// submit queues o. After a failure or close, o.finish gets the error by way of later.
func (s *store) submit(o op, later *callbacks) {
	s.mu.Lock()
	err := s.refusal()
	if err == nil && s.closed {
		err = closed()
	}
	if err != nil {
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
	if w.err != nil {
		s.db.Fail(w.err) // at once, because later ops must not be stored after a gap
	}
	switch g.err = s.db.Err(); {
	case g.err != nil:
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
			s.db.Fail(err)
			err = failed(err)
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

func failed(cause error) error {
	return errorf(InternalError, "The broker's store failed and the broker takes no more work: %v", cause)
}

// refusal returns why requests are refused; nil while the store works, and in memory mode.
func (s *store) refusal() error {
	if s == nil {
		return nil
	}
	if cause := s.db.Err(); cause != nil {
		return failed(cause)
	}
	return nil
}

// await blocks until everything submitted before is durable and published.
func (s *store) await() {
	done := make(chan struct{})
	var later callbacks
	s.submit(&waiting{done: func(error) { close(done) }}, &later)
	later.run()
	<-done
}

// close completes all submitted ops, and those that they lead to, and closes the store.
func (s *store) close() error {
	s.await()
	s.await()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.await() // ops submitted meanwhile; later ones are refused
	close(s.stop)
	<-s.done
	return s.db.Close()
}
