package cosmosemu

import (
	"cmp"
	"slices"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
)

// sortedRow is a row of an ordered query that may be on the page.
type sortedRow struct {
	key      query.SortKey
	document uint64
	number   int64 // of the row within the document
	row      []byte
}

func (p *queryPage) compare(a, b *sortedRow) int {
	if c := p.b.Compare(a.key, b.key); c != 0 {
		return c
	}
	if c := cmp.Compare(a.document, b.document); c != 0 {
		if p.b.Descending() {
			return -c
		}
		return c
	}
	return cmp.Compare(a.number, b.number)
}

// ordered serves rows in the order of ORDER BY. Ties are in the order of insertion, or in
// reverse if the first key is DESC. The continuation is the position of the last row, so rows
// inserted before it do not shift the pages.
func (p *queryPage) ordered(distinct bool) error {
	w := p.b.Window()
	at := continuation{}
	after := p.resume
	if p.from != nil {
		at = *p.from
		after = &sortedRow{key: at.key, document: at.Document, number: at.Row}
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
		at.key, at.Document, at.Row = r.key, r.document, r.number
		at.Emitted++
	}
	return nil
}

// collect returns the rows after a position in order: all of them, or at least as many as
// the page can need.
func (p *queryPage) collect(after *sortedRow, distinct bool, w query.Window) ([]sortedRow, error) {
	need := p.limit + 1
	if p.from == nil {
		need += int(min(w.Offset, 1<<30))
	}
	var rows []sortedRow
	var worst *sortedRow // the last of the best rows so far, once there are enough
	take := func(r sortedRow) {
		if after != nil && !distinct && p.compare(&r, after) <= 0 || worst != nil && p.compare(&r, worst) > 0 {
			return
		}
		row, ok := p.b.AppendRow(nil)
		if !ok {
			return
		}
		r.row = row
		rows = append(rows, r)
		if !distinct && len(rows) >= 2*need {
			p.sort(rows)
			rows = rows[:need]
			last := rows[need-1]
			worst = &last
		}
	}
	var key query.SortKey // of the current document; its rows share the key
	var document uint64
	var doc []byte
	one := func(n int64) bool {
		if n == 1 {
			key = p.b.SortKey(doc)
		}
		take(sortedRow{key: key, document: document, number: n})
		return true
	}
	err := p.scan(0, func(number uint64, body []byte) bool {
		document, doc = number, body
		return p.each(body, one)
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
