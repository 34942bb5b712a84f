package cosmosfeed

import (
	"fmt"

	"feedbox/changefeed"
)

// filter selects the documents of one reply that belong to the lease it was read for. The
// package documentation draws it.
type filter struct {
	hash     func(encoded []byte) epk
	narrow   bool // the lease is a part of the physical range: keep only its own documents
	check    bool // check that the physical range contains the computed keys
	lease    span
	physical span
	scratch  []byte
	doubt    error // a computed key lies outside the physical range
}

// newFilter returns the filter for a reply of the physical range read. A lease that is a
// part of that range needs computed keys that were never found wrong.
func (f *Feed) newFilter(a *about, lease, read changefeed.FeedRange) (*filter, error) {
	g := &filter{hash: f.hash, narrow: !lease.Contains(read)}
	var single, singleRead bool
	g.lease, single = newSpan(lease)
	g.physical, singleRead = newSpan(read)
	why, doubt := a.keys.unhashed, f.doubt.Load()
	switch {
	case why != "":
	case doubt != nil:
		why = keysAreWrong
	case !singleRead:
		why = "the bounds of the physical range are not those of a single hash"
	case g.narrow && !single:
		why = "its bounds are not those of a single hash"
	}
	switch {
	case why == "":
		g.check = g.narrow || !read.Contains(changefeed.FullRange())
	case g.narrow && doubt != nil:
		return nil, fmt.Errorf("%w: %w", narrowError(lease, read, why), *doubt)
	case g.narrow:
		return nil, narrowError(lease, read, why)
	}
	return g, nil
}

const keysAreWrong = "keys computed here are wrong"

// narrowError reports that the documents of a lease cannot be distinguished from the rest
// of a physical range.
func narrowError(lease, read changefeed.FeedRange, why string) error {
	return fmt.Errorf("the lease %s is a part of the physical range %s and its documents cannot be distinguished from the others: %s: %w",
		lease, read, why, changefeed.ErrPermanent)
}

// admits reports whether the document with these key values belongs to the lease.
func (g *filter) admits(values [][]byte, lsn int64) (bool, error) {
	if !g.check {
		return true, nil
	}
	encoded, sure := encodeKey(g.scratch[:0], values[0])
	g.scratch = encoded
	if !sure {
		if g.narrow {
			return false, narrowError(g.lease.rng, g.physical.rng, fmt.Sprintf("the document with LSN %d has no partition key that can be hashed", lsn))
		}
		return true, nil
	}
	key := g.hash(encoded)
	if !g.physical.has(key) {
		g.doubt = fmt.Errorf("the computed effective partition key %s of the document with LSN %d lies outside the physical range %s it was read from: "+
			"leases narrower than a physical range cannot be processed", key, lsn, g.physical.rng)
		if g.narrow {
			return false, narrowError(g.lease.rng, g.physical.rng, keysAreWrong)
		}
		g.check = false
		return true, nil
	}
	return !g.narrow || g.lease.has(key), nil
}

// rememberDoubt stores a filter's doubt for the whole container, and returns err. Without
// err it returns the doubt itself, the first time only.
func (f *Feed) rememberDoubt(g *filter, err error) error {
	if g.doubt == nil {
		return err
	}
	first := f.doubt.CompareAndSwap(nil, &g.doubt)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", err, g.doubt)
	case first:
		return g.doubt
	}
	return nil
}

// span is a range of single hashes.
type span struct {
	rng      changefeed.FeedRange
	min, max epk
}

// newSpan parses the bounds. ok is false if they are longer than a hash.
func newSpan(r changefeed.FeedRange) (s span, ok bool) {
	s.rng = r
	var ok1, ok2 bool
	s.min, ok1 = parseBound(r.Min)
	s.max, ok2 = parseBound(r.Max)
	return s, ok1 && ok2
}

func (s *span) has(key epk) bool { return !key.less(s.min) && key.less(s.max) }
