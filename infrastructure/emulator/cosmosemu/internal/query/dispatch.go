package query

// minDispatch is the number of alternatives from which a table is faster.
const minDispatch = 8

// byText is an OR in which every alternative requires one path to equal some string, such as
// the OR of (id AND key) with which SDKs read many items at once. It evaluates only the
// alternatives for the document's string. It does not distinguish false from unknown, because
// a filter does not need that.
type byText struct {
	slot   int
	byText map[string][]cond
}

// dispatch replaces the outermost OR of a filter by a table if possible.
func dispatch(filter cond) cond {
	list, ok := filter.(or)
	if !ok || len(list.terms) < minDispatch {
		return filter
	}
	for _, first := range demands(list.terms[0]) {
		if table, ok := tableBy(first.slot, list.terms); ok {
			return table
		}
	}
	return filter
}

func tableBy(slot int, terms []cond) (byText, bool) {
	table := byText{slot, make(map[string][]cond, len(terms))}
	for _, t := range terms {
		found := false
		for _, d := range demands(t) {
			if d.slot == slot {
				key := string(d.want)
				table.byText[key] = append(table.byText[key], t)
				found = true
				break
			}
		}
		if !found {
			return byText{}, false
		}
	}
	return table, true
}

// demands returns equalities that must hold if c is true.
func demands(c cond) []textEquals {
	switch c := c.(type) {
	case textEquals:
		return []textEquals{c}
	case and:
		var list []textEquals
		for _, t := range c.terms {
			if d, ok := t.(textEquals); ok {
				list = append(list, d)
			}
		}
		return list
	}
	return nil
}

func (n byText) test(e *env) tri {
	v := e.slots[n.slot]
	if v.kind != String {
		return no
	}
	for _, t := range n.byText[string(v.text())] {
		if t.test(e) == yes {
			return yes
		}
	}
	return no
}
