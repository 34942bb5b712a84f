package broker

import (
	"cmp"
	"sync/atomic"
	"time"
)

// engine is what all entities of a broker share: the clock, the timers and the store.
type engine struct {
	options Options
	offset  atomic.Int64 // nanoseconds that Advance added
	timers  *timers
	store   *store // nil in memory mode
	// inMemory is the bytes that messages in memory take, with storage.
	inMemory atomic.Int64
	closed   atomic.Bool
}

// submit makes o durable, visible and finished: at once in memory mode (finish is
// left to later), else in the background.
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

// Partitions is how many partitions a partitioned entity of this namespace gets.
func (e *engine) Partitions() int {
	if e.options.Premium {
		return max(1, e.options.Partitions)
	}
	return cmp.Or(e.options.Partitions, defaultPartitions)
}

// defaultCache is what messages may take in memory before new ones are swapped out.
const defaultCache = 64 << 20
