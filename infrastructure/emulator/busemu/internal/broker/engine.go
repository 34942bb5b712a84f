package broker

import (
	"cmp"
	"sync/atomic"
	"time"
)

// engine has the parts that all entities of a broker share: clock, timers and store.
type engine struct {
	options Options
	offset  atomic.Int64 // nanoseconds added by Advance
	timers  *timers
	store   *store // nil in memory mode
	// inMemory counts the bytes of messages in memory, if there is a store.
	inMemory atomic.Int64
	closed   atomic.Bool
}

// submit makes o durable, visible and finished. In memory mode it does so at once, leaving
// finish to later; with a store, in the background.
func (e *engine) submit(o op, later *callbacks) {
	if later.group != nil {
		later.group.ops = append(later.group.ops, o)
		return
	}
	if e.store != nil {
		e.store.submit(o, later)
		return
	}
	o.write(nil)
	o.publish(later)
	later.finish(o)
}

// Now is the broker's clock: Options.Now plus what Advance added.
func (e *engine) Now() time.Time { return e.options.Now().Add(time.Duration(e.offset.Load())) }

func (e *engine) now() int64 { return e.options.Now().UnixNano() + e.offset.Load() }

func (e *engine) maxMessageSize() int {
	if e.options.Premium {
		return PremiumMaxMessageSize
	}
	return StandardMaxMessageSize
}

func (e *engine) messageLimit(kb int) int { return min(kb<<10, e.maxMessageSize()) }

// Partitions returns the number of partitions of a partitioned entity in this namespace.
func (e *engine) Partitions() int {
	if e.options.Premium {
		return max(1, e.options.Partitions)
	}
	return cmp.Or(e.options.Partitions, defaultPartitions)
}

// defaultCache limits the messages in memory; above it new ones are swapped out.
const defaultCache = 64 << 20
