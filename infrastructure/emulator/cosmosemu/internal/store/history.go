package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"feedbox/infrastructure/emulator/internal/disk"
)

// history iterates over documents or feed entries of several segments in the order of their
// positions. All its iterators see the same state of the store.
type history struct {
	space   keySpace
	sources []source
	at      int // index of the source with the lowest position, -1 at the end
}

type source struct {
	*pebble.Iterator
	kind byte
}

// openHistory starts at the first position not before from, in the given segments and
// kinds.
func (c *Container) openHistory(v view, segments []uint32, from position, kinds ...byte) (*history, error) {
	h := &history{space: c.space, sources: make([]source, 0, len(segments)*len(kinds))}
	for _, segment := range segments {
		for _, kind := range kinds {
			from.segment = segment
			options := &pebble.IterOptions{
				LowerBound: from.append(c.space.prefix(nil, kind)),
				UpperBound: c.space.segment(nil, kind, segment+1),
			}
			it, err := h.open(v, options)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("read history: %w", disk.AsDamage(err)), h.close())
			}
			it.First()
			h.sources = append(h.sources, source{it, kind})
		}
	}
	h.choose()
	return h, nil
}

func (h *history) open(v view, options *pebble.IterOptions) (*pebble.Iterator, error) {
	if len(h.sources) == 0 {
		return v.NewIter(options)
	}
	return h.sources[0].Clone(pebble.CloneOptions{IterOptions: options})
}

// newIterator opens another iterator in the same state, over the keys of one kind.
func (h *history) newIterator(kind byte) (*pebble.Iterator, error) {
	lower := h.space.prefix(nil, kind)
	it, err := h.sources[0].Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{LowerBound: lower, UpperBound: after(lower)}})
	if err != nil {
		return nil, fmt.Errorf("read history: %w", disk.AsDamage(err))
	}
	return it, nil
}

func (h *history) choose() {
	h.at = -1
	for i := range h.sources {
		if h.sources[i].Valid() && (h.at < 0 || h.sources[i].place().before(h.sources[h.at].place())) {
			h.at = i
		}
	}
}

func (s *source) place() position { return decodeKeyPosition(s.Key()) }

func (h *history) valid() bool   { return h.at >= 0 }
func (h *history) kind() byte    { return h.sources[h.at].kind }
func (h *history) value() []byte { return h.sources[h.at].Value() }
func (h *history) lsn() uint64   { return h.sources[h.at].place().lsn }

func (h *history) next() {
	h.sources[h.at].Next()
	h.choose()
}

// close closes the iterators and returns their first error.
func (h *history) close() error {
	var errs []error
	for _, s := range h.sources {
		errs = append(errs, s.Close())
	}
	return disk.AsDamage(errors.Join(errs...))
}

// segments returns the segments that may contain changes of the range.
func (r *Range) segments() []uint32 { return append([]uint32{r.Segment}, r.History...) }

// find moves an iterator over documents to a position.
func (c *Container) find(docs *pebble.Iterator, key []byte, created position) ([]byte, error) {
	key = c.space.document(key[:0], created)
	if docs.SeekGE(key) && bytes.Equal(docs.Key(), key) {
		return key, nil
	}
	if err := docs.Error(); err != nil {
		return key, fmt.Errorf("read document: %w", disk.AsDamage(err))
	}
	return key, fmt.Errorf("%w: document %d is in an index but not in the store", disk.ErrDamaged, created.number())
}
