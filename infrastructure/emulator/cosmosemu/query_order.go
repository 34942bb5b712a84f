package cosmosemu

import (
	"cmp"
	"slices"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
)

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
