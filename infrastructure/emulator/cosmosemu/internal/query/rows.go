package query

// Inner returns the query in FROM (SELECT ...), whose rows are the documents of this one; nil
// if the documents are those of the container.
func (b *Bound) Inner() *Bound { return b.inner }

// NamesAggregates reports whether the query has one row with aggregates as members, that is
// without SELECT VALUE and GROUP BY.
func (b *Bound) NamesAggregates() bool {
	q := b.q.root
	return len(q.aggregates) > 0 && !q.value && len(q.groupBy) == 0
}

// Sourceless reports whether the query has no FROM. It then has one row and no document.
func (b *Bound) Sourceless() bool {
	return len(b.q.root.from) == 0 || b.inner != nil && b.inner.Sourceless()
}

// Many reports whether one document may have several rows: FROM has JOIN or IN.
func (b *Bound) Many() bool { return len(b.loops) > 0 }

// Each calls f for each row of a document that WHERE accepts. Without JOIN and IN the document
// is the only row. It stops and returns false when f returns false. While f runs, AppendRow
// returns the row.
func (b *Bound) Each(doc []byte, f func() bool) bool {
	b.doc = doc
	b.stale()
	if len(b.loops) == 0 {
		return b.taken() != yes || f()
	}
	return runLoops(b.loops, b.from.at(doc), func() bool { return b.taken() != yes || f() })
}

// stale marks the values of the programs as outdated, so that they read the next document.
func (b *Bound) stale() {
	for _, p := range [...]*program{b.from, b.filter, b.output, b.groupBy} {
		if p != nil {
			p.fresh = false
		}
	}
}

func (b *Bound) taken() tri {
	if b.where == nil {
		return yes
	}
	return b.where.test(b.filter.at(b.doc))
}

// AppendRow appends the result of SELECT for the current row of Each as JSON text. ok is
// false, and nothing is appended, if SELECT VALUE is undefined. SELECT * appends the unchanged
// bytes of the document.
func (b *Bound) AppendRow(dst []byte) (row []byte, ok bool) {
	if b.output == nil {
		return append(dst, b.doc...), true
	}
	if row, ok = b.row.append(dst, b.output.at(b.doc)); !ok {
		return dst, false
	}
	return row, true
}

// Match reports whether WHERE is exactly true for at least one row of the document.
func (b *Bound) Match(doc []byte) bool {
	return !b.Each(doc, func() bool { return false })
}

// Project appends the row of a document without checking WHERE. It must not be used for
// queries with JOIN or IN.
func (b *Bound) Project(dst, doc []byte) (row []byte, ok bool) {
	b.doc = doc
	b.stale()
	return b.AppendRow(dst)
}

// Groups collects the documents of a query with GROUP BY or aggregates.
type Groups struct {
	b   *Bound
	all *groups
}

// NewGroups starts a collection. The query must have Shape.GroupBy or Shape.Aggregate.
func (b *Bound) NewGroups() *Groups { return &Groups{b, b.group.start()} }

// Add adds the rows of one document.
func (g *Groups) Add(doc []byte) {
	g.b.Each(doc, func() bool {
		g.all.add(g.b.groupBy.at(g.b.doc))
		return true
	})
}

// Rows calls f for the row of each group, in the order of their first rows, until f returns
// false. Without GROUP BY there is one group, even without documents.
func (g *Groups) Rows(f func(row []byte) bool) {
	b := g.b
	b.doc = nil
	for _, one := range g.all.list {
		b.stale()
		g.all.load(b.output.at(nil), one)
		if row, ok := b.AppendRow(nil); ok && !f(row) {
			return
		}
	}
}
