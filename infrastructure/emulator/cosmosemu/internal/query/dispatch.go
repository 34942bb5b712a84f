package query

// minDispatch is how many alternatives make a table worth while.
const minDispatch = 8

// byText is an OR whose every alternative demands that one path equals some text,
// such as the OR of (id AND key) by which SDKs read many items at once. It looks
// at the few alternatives for the text at hand. It tells yes from anything else
// only, which is all a filter asks for.
type byText struct {
	slot   int
	byText map[string][]cond
}

// dispatch makes a table of the outermost OR of a filter if it can.
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

// demands returns the equalities without which c is not true.
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
