package query

// Inner is the query that makes the documents of this one, FROM (SELECT ...); nil
// when the container does.
func (b *Bound) Inner() *Bound { return b.inner }

// NamesAggregates reports whether the one row has aggregates as members: neither
// SELECT VALUE nor GROUP BY.
func (b *Bound) NamesAggregates() bool {
	q := b.q.root
	return len(q.aggregates) > 0 && !q.value && len(q.groupBy) == 0
}

// Sourceless reports whether the query has no FROM: it makes one row of nothing.
func (b *Bound) Sourceless() bool {
	return len(b.q.root.from) == 0 || b.inner != nil && b.inner.Sourceless()
}

// Many reports whether one document may make several rows: FROM has JOIN or IN.
func (b *Bound) Many() bool { return len(b.loops) > 0 }

// Each calls f for each row that WHERE takes of those that FROM makes of the
// document: without JOIN and IN that is the document itself. It is false as soon as
// f is. While f runs, AppendRow makes the row.
func (b *Bound) Each(doc []byte, f func() bool) bool {
	b.doc = doc
	b.stale()
	if len(b.loops) == 0 {
		return b.taken() != yes || f()
	}
	return runLoops(b.loops, b.from.at(doc), func() bool { return b.taken() != yes || f() })
}

// stale makes the programs read the next document.
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

// AppendRow appends, as JSON text, what SELECT makes of the row that Each is at. ok
// is false, and nothing is appended, when that is no row: SELECT VALUE of something
// undefined. SELECT * appends the bytes of the document as they are.
func (b *Bound) AppendRow(dst []byte) (row []byte, ok bool) {
	if b.output == nil {
		return append(dst, b.doc...), true
	}
	if row, ok = b.row.append(dst, b.output.at(b.doc)); !ok {
		return dst, false
	}
	return row, true
}

// Match reports whether WHERE is exactly true for the document, in one row at
// least.
func (b *Bound) Match(doc []byte) bool {
	return !b.Each(doc, func() bool { return false })
}

// Project is AppendRow for a document, whether or not WHERE takes it. It is for
// queries without JOIN and IN.
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

// NewGroups starts the collection, for queries whose Shape says GroupBy or
// Aggregate.
func (b *Bound) NewGroups() *Groups { return &Groups{b, b.group.start()} }

// Add takes in the rows of one document.
func (g *Groups) Add(doc []byte) {
	g.b.Each(doc, func() bool {
		g.all.add(g.b.groupBy.at(g.b.doc))
		return true
	})
}

// Rows calls f for the row of each group, in the order of their first rows, until f
// is false. Without GROUP BY there is one, even of no document.
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
