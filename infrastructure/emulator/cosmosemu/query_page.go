package cosmosemu

import (
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxQueryBytes ends a page of a query: the service's response limit of 4 MB.
const maxQueryBytes = 4 << 20

// queryPage computes one page of a query's rows.
type queryPage struct {
	c     *store.Container
	b     *query.Bound // nil: all items as they are
	scope store.Scope
	limit int           // rows
	from  *continuation // nil: the first page

	rows    []byte // appended to
	head    int    // length of what was there before the rows
	count   int
	scanned int
	next    *continuation // nil: no more
}

func (p *queryPage) run() error {
	if p.b == nil {
		return p.streamed(query.Window{Limit: -1})
	}
	switch shape := p.b.Query().Shape(); {
	case shape.Aggregate:
		return p.aggregated()
	case shape.OrderBy:
		return p.ordered(shape.Distinct)
	case shape.Distinct:
		return p.distinct()
	}
	return p.streamed(p.b.Window())
}

func (p *queryPage) full() bool {
	return p.count >= p.limit || len(p.rows)-p.head >= maxQueryBytes
}

// emit appends a row; it is false if the document makes none.
func (p *queryPage) emit(doc []byte) bool {
	mark := len(p.rows)
	if p.count > 0 {
		p.rows = append(p.rows, ',')
	}
	if p.b == nil {
		p.rows = append(p.rows, doc...)
		p.count++
		return true
	}
	row, ok := p.b.Project(p.rows, doc)
	if !ok {
		p.rows = p.rows[:mark]
		return false
	}
	p.rows = row
	p.count++
	return true
}

// emitRow appends a row made before.
func (p *queryPage) emitRow(row []byte) {
	if p.count > 0 {
		p.rows = append(p.rows, ',')
	}
	p.rows = append(p.rows, row...)
	p.count++
}

// streamed serves rows in the order of insertion. A page that is exactly full has
// a continuation, though nothing may follow, as the service's.
func (p *queryPage) streamed(w query.Window) error {
	at := continuation{}
	if p.from != nil {
		at = *p.from
		p.scope.After = at.Document
	}
	done := w.Limit >= 0 && at.Emitted >= w.Limit
	if done {
		return nil
	}
	err := p.c.Scan(p.scope, func(number uint64, body []byte) bool {
		p.scanned++
		at.Document = number
		if p.b != nil && !p.b.Match(body) {
			return true
		}
		if at.Skipped < w.Offset {
			if p.produces(body) {
				at.Skipped++
			}
			return true
		}
		if !p.emit(body) {
			return true
		}
		at.Emitted++
		done = w.Limit >= 0 && at.Emitted >= w.Limit
		return !done && !p.full()
	})
	if err == nil && !done && p.full() {
		p.next = &at
	}
	return err
}

func (p *queryPage) produces(body []byte) bool {
	_, ok := p.b.Project(nil, body)
	return ok
}

// distinct serves each different row once, where it occurs first. Later pages read
// the earlier rows again to know them.
func (p *queryPage) distinct() error {
	w := p.b.Window()
	at := continuation{}
	if p.from != nil {
		at = *p.from
	}
	after := at.Document
	seen := make(map[string]bool)
	done := w.Limit >= 0 && at.Emitted >= w.Limit
	if done {
		return nil
	}
	err := p.c.Scan(p.scope, func(number uint64, body []byte) bool {
		p.scanned++
		if !p.b.Match(body) {
			return true
		}
		row, ok := p.b.Project(nil, body)
		if !ok {
			return true
		}
		key := string(query.DistinctKey(nil, row))
		if seen[key] {
			return true
		}
		seen[key] = true
		if number <= after {
			return true
		}
		at.Document = number
		if at.Skipped < w.Offset {
			at.Skipped++
			return true
		}
		p.emitRow(row)
		at.Emitted++
		done = w.Limit >= 0 && at.Emitted >= w.Limit
		return !done && !p.full()
	})
	if err == nil && !done && p.full() {
		p.next = &at
	}
	return err
}

// aggregated serves the one row of an aggregate.
func (p *queryPage) aggregated() error {
	agg := p.b.NewAggregate()
	err := p.c.Scan(p.scope, func(_ uint64, body []byte) bool {
		p.scanned++
		if p.b.Match(body) {
			agg.Add(body)
		}
		return true
	})
	if err != nil {
		return err
	}
	if row, ok := agg.AppendRow(nil); ok {
		p.emitRow(row)
	}
	return nil
}
