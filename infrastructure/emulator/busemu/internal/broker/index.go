package broker

import (
	"iter"
	"sync/atomic"
)

const (
	chunkBits = 6
	chunkMask = 1<<chunkBits - 1
)

// chunk has the messages of 64 neighbouring sequence numbers. A message in memory has a slot;
// a swapped out one has only a few bits.
type chunk struct {
	slots     *[1 << chunkBits]*message // nil while none is in memory
	inMemory  uint64                    // one bit for each message, as in the other masks
	swapped   uint64
	deferred  uint64 // this mask and those below are for swapped out messages
	scheduled uint64
	recorded  uint64 // has a state record
	first     int64  // sequence number of the first slot
	wake      int64  // no later than the first time when a swapped out message expires or is due; 0 = never
	heapIndex int32  // in index.wakes plus 1
}

// index finds messages by sequence number and iterates over them in order.
type index struct {
	tables    []table // one for each partition
	n         int
	bytes     int64 // of payload
	scheduled int   // scheduled messages that are swapped out
	shared    int   // swapped out messages that share their payload
	own       int64 // bytes of payload of swapped out messages that do not share it
	wakes     wakeHeap
	spare     *chunk
	memory    *atomic.Int64 // bytes of messages in memory, of all holders; nil without storage
}

// at returns the chunk of a sequence number, nil if it has none.
func (x *index) at(sequence int64) *chunk {
	p := uint64(partitionOf(sequence)) // a client may send any number
	if p >= uint64(len(x.tables)) {
		return nil
	}
	return x.tables[p].at(sequence >> chunkBits)
}

// set adds m, which is new.
func (x *index) set(m *message) {
	number := m.sequence >> chunkBits
	at := x.tables[partitionOf(m.sequence)].slot(number)
	if *at == nil {
		if *at, x.spare = x.spare, nil; *at == nil {
			*at = new(chunk)
		}
		(*at).first = number << chunkBits
	}
	x.fill(*at, m)
	x.n++
	x.bytes += int64(len(m.body.payload))
}

// fill puts m into its slot.
func (x *index) fill(c *chunk, m *message) {
	if c.slots == nil {
		c.slots = new([1 << chunkBits]*message)
	}
	i := m.sequence & chunkMask
	c.slots[i] = m
	c.inMemory |= 1 << i
	if x.memory != nil {
		x.memory.Add(m.cost())
	}
}

// empty is the inverse of fill.
func (x *index) empty(c *chunk, m *message) {
	i := m.sequence & chunkMask
	c.slots[i] = nil
	c.inMemory &^= 1 << i
	if x.memory != nil {
		x.memory.Add(-m.cost())
	}
}

// get returns a message that is in memory.
func (x *index) get(sequence int64) *message {
	c := x.at(sequence)
	if c == nil || c.slots == nil {
		return nil
	}
	return c.slots[sequence&chunkMask]
}

// swapped returns the place of a swapped out message, nowhere for any other.
func (x *index) swapped(sequence int64) place {
	c, bit := x.at(sequence), uint64(1)<<(sequence&chunkMask)
	switch {
	case c == nil || c.swapped&bit == 0:
		return nowhere
	case c.scheduled&bit != 0:
		return inScheduled
	case c.deferred&bit != 0:
		return inDeferred
	}
	return inReady
}

// remove removes m, which is in memory.
func (x *index) remove(m *message) {
	c := x.at(m.sequence)
	x.empty(c, m)
	x.n--
	x.bytes -= int64(len(m.body.payload))
	if c.inMemory|c.swapped != 0 {
		return
	}
	x.wakes.set(c, 0)
	x.spare = c
	x.tables[partitionOf(m.sequence)].drop(m.sequence >> chunkBits)
	if x.n == 0 {
		x.spare = nil
	}
}

// swapOut drops m from memory and sets its bits. wake is when it expires or is due, 0 = never.
func (x *index) swapOut(m *message, wake int64) {
	c, bit := x.at(m.sequence), uint64(1)<<(m.sequence&chunkMask)
	x.empty(c, m)
	if c.inMemory == 0 {
		c.slots = nil
	}
	c.swapped |= bit
	if m.deferred {
		c.deferred |= bit
	}
	if m.recorded {
		c.recorded |= bit
	}
	if m.scheduledAt != 0 {
		c.scheduled |= bit
	}
	x.countSwapped(m, 1)
	if wake != 0 && (c.wake == 0 || wake < c.wake) {
		x.wakes.set(c, wake)
	}
}

// swapIn is the inverse of swapOut.
func (x *index) swapIn(m *message) {
	c, bit := x.at(m.sequence), uint64(1)<<(m.sequence&chunkMask)
	for _, mask := range []*uint64{&c.swapped, &c.deferred, &c.recorded, &c.scheduled} {
		*mask &^= bit
	}
	if c.swapped == 0 {
		x.wakes.set(c, 0)
	}
	x.countSwapped(m, -1)
	x.fill(c, m)
}

func (x *index) countSwapped(m *message, by int) {
	if m.scheduledAt != 0 {
		x.scheduled += by
	}
	if m.body.shared {
		x.shared += by
	} else {
		x.own += int64(by * len(m.body.payload))
	}
}

// from yields the messages from a sequence number on, one partition after the other, each in
// order; nil for a swapped out one. No message may be added or removed meanwhile.
func (x *index) from(sequence int64) iter.Seq2[int64, *message] {
	return func(yield func(int64, *message) bool) {
		for i := range x.tables {
			for at, m := range x.tables[i].from(sequence) {
				if !yield(at, m) {
					return
				}
			}
		}
	}
}

// forgetAll empties the index.
func (x *index) forgetAll() {
	if x.memory != nil {
		for _, m := range x.from(0) {
			if m != nil {
				x.memory.Add(-m.cost())
			}
		}
	}
	*x = index{memory: x.memory, tables: make([]table, len(x.tables))}
}
