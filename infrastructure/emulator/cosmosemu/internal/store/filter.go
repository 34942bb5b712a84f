package store

import "hash/maphash"

// filter is a Bloom filter of the item keys in a container, so that a create with a new id
// needs no look-up. It has no false negatives and a few false positives. It grows by adding
// larger blocks.
//
// Only containers created by this process have a filter, because the filter of others would
// be incomplete. Container.writing guards it.
type filter struct {
	seed   maphash.Seed
	blocks []filterBlock // new keys are added to the last one
}

type filterBlock struct {
	words []uint64 // their number is a power of two
	room  int      // number of keys that can still be added
}

const (
	filterFirst  = 512 // words of the first block: 4 KB
	filterGrowth = 4   // factor between blocks, because a look-up reads every block
	filterBits   = 12  // per key
)

func newFilter() *filter {
	f := &filter{seed: maphash.MakeSeed()}
	f.grow(filterFirst)
	return f
}

func (f *filter) grow(words int) {
	f.blocks = append(f.blocks, filterBlock{words: make([]uint64, words), room: words * 64 / filterBits})
}

// mask selects five bits of one word, so that a look-up reads one cache line per block.
func mask(h uint64) uint64 {
	return 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63) | 1<<(h>>24&63)
}

func (b *filterBlock) word(h uint64) *uint64 { return &b.words[h>>32&uint64(len(b.words)-1)] }

// mayHold reports whether the key may be in the container. It is always true for a nil filter.
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

// add adds a key.
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
