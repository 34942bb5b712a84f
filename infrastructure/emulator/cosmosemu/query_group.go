package cosmosemu

import "feedbox/infrastructure/emulator/cosmosemu/internal/query"

// distinct serves each different row once, at its first occurrence. Later pages read the
// earlier rows again, because the continuation does not contain them.
func (p *queryPage) distinct() error {
	w := p.b.Window()
	at := continuation{}
	if p.from != nil {
		at = *p.from
	}
	start := at
	seen := make(map[string]bool)
	done := w.Limit >= 0 && at.Emitted >= w.Limit
	if done {
		return nil
	}
	var document uint64
	one := func(n int64) bool {
		row, ok := p.b.AppendRow(nil)
		if !ok {
			return true
		}
		key := string(query.DistinctKey(nil, row))
		if seen[key] {
			return true
		}
		seen[key] = true
		if document < start.Document || document == start.Document && n <= start.Row {
			return true
		}
		at.Document, at.Row = document, n
		if at.Skipped < w.Offset {
			at.Skipped++
			return true
		}
		p.emitRow(row)
		at.Emitted++
		done = w.Limit >= 0 && at.Emitted >= w.Limit
		return !done && !p.full()
	}
	err := p.scan(0, func(number uint64, body []byte) bool {
		document = number
		return p.each(body, one)
	})
	if err == nil && !done && p.full() {
		p.next = &at
	}
	return err
}

// grouped serves the rows of GROUP BY and of aggregates. Every page reads all documents. The
// continuation counts the groups served, in the order of their first rows, so rows that are
// deleted between pages may shift the pages.
func (p *queryPage) grouped() error {
	groups := p.b.NewGroups()
	err := p.scan(0, func(_ uint64, body []byte) bool {
		groups.Add(body)
		return true
	})
	if err != nil {
		return err
	}
	w, at := p.b.Window(), continuation{}
	if p.from != nil {
		at = *p.from
	}
	n, seen := int64(0), make(map[string]bool)
	groups.Rows(func(row []byte) bool {
		if p.b.Query().Shape().Distinct {
			key := string(query.DistinctKey(nil, row))
			if seen[key] {
				return true
			}
			seen[key] = true
		}
		n++
		switch {
		case n <= max(at.Skipped+at.Emitted, w.Offset):
			at.Skipped = min(max(at.Skipped, n), w.Offset)
			return true
		case w.Limit >= 0 && at.Emitted >= w.Limit:
			return false
		case p.full():
			p.next = &at
			return false
		}
		p.emitRow(row)
		at.Emitted++
		return true
	})
	return nil
}
