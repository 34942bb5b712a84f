package cosmosemu

import (
	"cmp"
	"slices"

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

// sortedRow is a candidate of an ordered query.
type sortedRow struct {
	key      query.SortKey
	document uint64
	row      []byte
}

func (p *queryPage) compare(a, b *sortedRow) int {
	if c := p.b.Compare(a.key, b.key); c != 0 {
		return c
	}
	if p.b.Descending() {
		return cmp.Compare(b.document, a.document)
	}
	return cmp.Compare(a.document, b.document)
}

// ordered serves rows in the order of ORDER BY, ties in the order of insertion, or
// in the reverse of it where the first key is DESC.
// The continuation is the position of the last row, so rows inserted before it
// meanwhile do not shift the pages.
func (p *queryPage) ordered(distinct bool) error {
	w := p.b.Window()
	at := continuation{}
	var after *sortedRow
	if p.from != nil {
		at = *p.from
		after = &sortedRow{key: at.key, document: at.Document}
	}
	rows, err := p.collect(after, distinct, w)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if at.Skipped < w.Offset {
			at.Skipped++
			continue
		}
		if w.Limit >= 0 && at.Emitted >= w.Limit {
			return nil
		}
		if p.full() {
			p.next = &at
			return nil
		}
		p.emitRow(r.row)
		at.key, at.Document = r.key, r.document
		at.Emitted++
	}
	return nil
}

// collect returns the candidates behind after in order: all of them, or as many as
// the page can need.
func (p *queryPage) collect(after *sortedRow, distinct bool, w query.Window) ([]sortedRow, error) {
	need := p.limit + 1
	if p.from == nil {
		need += int(min(w.Offset, 1<<30))
	}
	var rows []sortedRow
	var worst *sortedRow // of the best rows so far, once there are enough
	err := p.c.Scan(p.scope, func(number uint64, body []byte) bool {
		p.scanned++
		if !p.b.Match(body) {
			return true
		}
		r := sortedRow{key: p.b.SortKey(body), document: number}
		if after != nil && !distinct && p.compare(&r, after) <= 0 {
			return true
		}
		if worst != nil && p.compare(&r, worst) > 0 {
			return true
		}
		row, ok := p.b.Project(nil, body)
		if !ok {
			return true
		}
		r.row = row
		rows = append(rows, r)
		if !distinct && len(rows) >= 2*need {
			p.sort(rows)
			rows = rows[:need]
			worst = &sortedRow{key: rows[need-1].key, document: rows[need-1].document}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	p.sort(rows)
	if distinct {
		rows = firstOfEach(rows)
		if after != nil {
			rows = slices.DeleteFunc(rows, func(r sortedRow) bool { return p.compare(&r, after) <= 0 })
		}
	}
	return rows, nil
}

func (p *queryPage) sort(rows []sortedRow) {
	slices.SortFunc(rows, func(a, b sortedRow) int { return p.compare(&a, &b) })
}

// firstOfEach drops rows equal to an earlier one.
func firstOfEach(rows []sortedRow) []sortedRow {
	seen := make(map[string]bool, len(rows))
	return slices.DeleteFunc(rows, func(r sortedRow) bool {
		key := string(query.DistinctKey(nil, r.row))
		dup := seen[key]
		seen[key] = true
		return dup
	})
}
