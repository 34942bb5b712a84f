package broker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Broker is the broker of one namespace. Its own methods send, receive and settle messages;
// those of its catalog administer entities. Safe for concurrent use.
type Broker struct{ *catalog }

// Open opens a broker, or creates it if its directory is empty. It fails on a damaged store.
func Open(o *Options) (*Broker, error) {
	b := &Broker{&catalog{engine: new(engine), directory: directory{queues: make(map[string]*queue), topics: make(map[string]*topic)}}}
	if o != nil {
		b.options = *o
	}
	if b.options.Now == nil {
		b.options.Now = time.Now
	}
	b.options.CacheBytes = cmp.Or(b.options.CacheBytes, defaultCache)
	b.options.Logger = cmp.Or(b.options.Logger, slog.New(slog.DiscardHandler))
	if b.options.Dir == "" && b.options.FS != nil {
		return nil, errors.New("broker: option FS is set but Dir is not: set both, or neither for a broker in memory")
	}
	b.timers = newTimers(b.now)
	if b.options.Dir != "" {
		store, err := openStore(&b.options)
		if err != nil {
			return nil, err
		}
		b.store = store
		resume, err := load(b.catalog)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("load the broker's store in %s: %w", b.options.Dir, err), store.db.Close())
		}
		store.start()
		resume()
	}
	go b.timers.run()
	b.timers.fireDue()
	return b, nil
}

// Failed receives the cause once if the store fails. After that every request gets
// InternalError. The channel is nil in memory mode.
func (b *Broker) Failed() <-chan error {
	if b.store == nil {
		return nil
	}
	return b.store.db.Failed()
}

// Close ends all senders and receivers (their Closed is called), makes accepted work durable
// and stops the goroutines. Later calls fail with OperationCancelled.
func (b *Broker) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	b.timers.close()
	var later callbacks
	b.mu.RLock()
	for _, q := range b.queues {
		q.inlet.detachAll(closed(), &later)
		q.holders.detachAll(closed(), &later)
	}
	for _, t := range b.topics {
		t.inlet.detachAll(closed(), &later)
		for _, s := range t.subscriptions {
			s.holders.detachAll(closed(), &later)
		}
	}
	b.mu.RUnlock()
	later.run()
	if b.store == nil {
		return nil
	}
	if err := b.store.close(); err != nil {
		return fmt.Errorf("close the broker's store in %s: %w", b.options.Dir, err)
	}
	return nil
}

// Advance moves the broker's clock forward. Everything that is due by then has happened when
// it returns. Advance(0) applies a jump of Options.Now. It must not be called from a callback.
func (b *Broker) Advance(d time.Duration) {
	b.offset.Add(int64(max(0, d)))
	if !b.closed.Load() {
		b.timers.fireDue()
	}
}
