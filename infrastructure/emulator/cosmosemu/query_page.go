package cosmosemu

import (
	"math"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxQueryBytes limits a page of a query. It is the service's limit of 4 MB for a response.
const maxQueryBytes = 4 << 20

// queryPage computes one page of a query's rows.
type queryPage struct {
	c        *store.Container
	b        *query.Bound // nil: all items unchanged
	scope    store.Scope
	limit    int           // rows
	from     *continuation // nil: the first page
	backward bool          // all items, the latest first
	resume   *sortedRow    // the first page starts after it; nil: at the beginning

	keep bool     // the rows are copied to kept, and the page has no size limit
	kept [][]byte // copies

	rows    []byte // buffer to append to
	head    int    // length of the buffer before the first row
	count   int
	scanned int
	next    *continuation // nil: this is the last page
}

func (p *queryPage) run() error {
	if p.backward {
		return p.backwards()
	}
	if p.b == nil {
		return p.streamed(query.Window{Limit: -1})
	}
	switch shape := p.b.Query().Shape(); {
	case shape.Aggregate, shape.GroupBy:
		return p.grouped()
	case shape.OrderBy:
		return p.ordered(shape.Distinct)
	case shape.Distinct:
		return p.distinct()
	}
	return p.streamed(p.b.Window())
}

// scan calls f for the documents of the query after the given number. They are documents of
// the container, or the rows of a sub-query in FROM, which are numbered from 1.
func (p *queryPage) scan(after uint64, f func(number uint64, body []byte) bool) error {
	p.scope.After = after
	counted := func(number uint64, body []byte) bool {
		p.scanned++
		return f(number, body)
	}
	switch {
	case p.b == nil || !p.b.Sourceless() && p.b.Inner() == nil:
		return p.c.Scan(p.scope, counted)
	case p.b.Inner() == nil:
		if after == 0 {
			f(1, nil)
		}
		return nil
	}
	inner := queryPage{c: p.c, b: p.b.Inner(), scope: p.scope, limit: math.MaxInt32, keep: true}
	err := inner.run()
	p.scanned += inner.scanned
	for i, row := range inner.kept {
		if number := uint64(i) + 1; number > after && !f(number, row) {
			break
		}
	}
	return err
}

func (p *queryPage) full() bool {
	return !p.keep && (p.count >= p.limit || len(p.rows)-p.head >= maxQueryBytes)
}

// emit appends the current row of the query, or the unchanged document. It returns false if
// there is no row.
func (p *queryPage) emit(doc []byte) bool {
	if p.b == nil {
		p.emitRow(doc)
		return true
	}
	if p.keep {
		row, ok := p.b.AppendRow(nil)
		if ok {
			p.emitRow(row)
		}
		return ok
	}
	mark := len(p.rows)
	if p.count > 0 {
		p.rows = append(p.rows, ',')
	}
	row, ok := p.b.AppendRow(p.rows)
	if !ok {
		p.rows = p.rows[:mark]
		return false
	}
	p.rows = row
	p.count++
	return true
}

// emitRow appends a finished row.
func (p *queryPage) emitRow(row []byte) {
	if p.keep {
		p.kept = append(p.kept, row)
		p.count++
		return
	}
	if p.count > 0 {
		p.rows = append(p.rows, ',')
	}
	p.rows = append(p.rows, row...)
	p.count++
}

// each calls f for the rows of a document, which are numbered from 1.
func (p *queryPage) each(body []byte, f func(row int64) bool) bool {
	switch {
	case p.b == nil:
		return f(1)
	case !p.b.Many():
		return !p.b.Match(body) || f(1)
	}
	n := int64(0)
	return p.b.Each(body, func() bool {
		n++
		return f(n)
	})
}

// streamed serves rows in the order of insertion. A page that is exactly full has a
// continuation even if no row follows, as on the service. Within one logical partition it
// looks ahead instead, because the .NET SDK's tests expect no empty page there.
func (p *queryPage) streamed(w query.Window) error {
	at := continuation{}
	if p.from != nil {
		at = *p.from
	}
	start, after := at, at.Document
	if at.Row > 0 {
		after-- // the document has more rows
	}
	done := w.Limit >= 0 && at.Emitted >= w.Limit
	if done {
		return nil
	}
	var doc []byte
	ahead, follows, end := p.scope.Part != nil, false, at
	many := p.b != nil && p.b.Many()
	one := func(row int64) bool {
		if at.Document == start.Document && row <= start.Row {
			return true
		}
		at.Row = row
		switch {
		case at.Skipped < w.Offset:
			if p.produces() {
				at.Skipped++
			}
			return true
		case p.full(): // look ahead
			follows = p.b == nil || p.produces()
			return !follows
		case !p.emit(doc):
			return true
		}
		at.Emitted++
		done = w.Limit >= 0 && at.Emitted >= w.Limit
		if end = at; !many {
			end.Row = 0
		}
		return !done && (ahead || !p.full())
	}
	err := p.scan(after, func(number uint64, body []byte) bool {
		at.Document, at.Row, doc = number, 0, body
		return p.each(body, one)
	})
	if err == nil && !done && p.full() && (follows || !ahead) {
		p.next = &end
	}
	return err
}

func (p *queryPage) produces() bool {
	_, ok := p.b.AppendRow(nil)
	return ok
}
