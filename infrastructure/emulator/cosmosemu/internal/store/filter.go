package store

import "hash/maphash"

// filter remembers which item keys a container may hold, so that a create of a
// new id needs no look-up. It is a Bloom filter: it never forgets a key, and takes
// a few that are not there for present. It grows by adding larger blocks.
//
// Only a container made by this process has a complete one; others have none.
// Container.writing guards it.
type filter struct {
	seed   maphash.Seed
	blocks []filterBlock // the last one takes new keys
}

type filterBlock struct {
	words []uint64 // a power of two
	room  int      // keys it still takes
}

const (
	filterFirst  = 512 // words of the first block: 4 KB
	filterGrowth = 4
	filterBits   = 12 // per key
)

func newFilter() *filter {
	f := &filter{seed: maphash.MakeSeed()}
	f.grow(filterFirst)
	return f
}

func (f *filter) grow(words int) {
	f.blocks = append(f.blocks, filterBlock{words: make([]uint64, words), room: words * 64 / filterBits})
}

// mask picks five bits of one word: a look-up touches one cache line per block.
func mask(h uint64) uint64 {
	return 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63) | 1<<(h>>24&63)
}

func (b *filterBlock) word(h uint64) *uint64 { return &b.words[h>>32&uint64(len(b.words)-1)] }

// mayHold tells whether the key may be in the container. A nil filter knows nothing.
func (f *filter) mayHold(key []byte) bool {
	if f == nil {
		return true
	}
	h := maphash.Bytes(f.seed, key)
	m := mask(h)
	for i := range f.blocks {
		if *f.blocks[i].word(h)&m == m {
			return true
		}
	}
	return false
}

// add remembers a key.
func (f *filter) add(key []byte) {
	if f == nil {
		return
	}
	last := &f.blocks[len(f.blocks)-1]
	if last.room == 0 {
		f.grow(len(last.words) * filterGrowth)
		last = &f.blocks[len(f.blocks)-1]
	}
	h := maphash.Bytes(f.seed, key)
	*last.word(h) |= mask(h)
	last.room--
}
