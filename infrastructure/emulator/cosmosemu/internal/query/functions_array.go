package query

// arrayFunctions work on arrays. Another argument makes the result undefined.
var arrayFunctions = map[string]function{
	"ARRAY_CONCAT": {min: 2, max: -1, apply: func(a []Value) Value {
		var l listBuilder
		for _, v := range a {
			if v.kind != Array {
				return Value{}
			}
			for x := range items(v.raw) {
				l.add(x)
			}
			if len(l.b) > maxValue {
				return Value{}
			}
		}
		return l.value()
	}},
	"ARRAY_CONTAINS":     {min: 2, max: 3, lenient: true, apply: arrayContains},
	"ARRAY_CONTAINS_ALL": quantified(true, element),
	"ARRAY_CONTAINS_ANY": quantified(false, element),
	"ARRAY_LENGTH": {min: 1, max: 1, apply: func(a []Value) Value {
		if a[0].kind != Array {
			return Value{}
		}
		return floatValue(float64(a[0].length()))
	}},
	"ARRAY_SLICE": {min: 2, max: 3, apply: arraySlice},
	// CHOOSE counts its choices from 1.
	"CHOOSE": {min: 2, max: -1, lenient: true, apply: func(a []Value) Value {
		if n, ok := a[0].integer(); ok && n >= 1 && n < int64(len(a)) {
			return a[n]
		}
		return Value{}
	}},
	"OBJECTTOARRAY": {min: 1, max: 3, apply: objectToArray},
	// SETINTERSECT has the order of its second argument.
	"SETINTERSECT": {min: 2, max: 2, apply: func(a []Value) Value {
		return set(a, func(x Value) bool { return holds(a[0], x) }, a[1])
	}},
	"SETUNION": {min: 2, max: 2, apply: func(a []Value) Value {
		return set(a, func(Value) bool { return true }, a[0], a[1])
	}},
}

// element reports whether an array holds a value. Nothing is known of an undefined one.
func element(in, x Value) (held, known bool) {
	if in.kind != Array || x.kind == Undefined {
		return false, false
	}
	return holds(in, x), true
}

// listBuilder builds an array of values.
type listBuilder struct{ b []byte }

func (l *listBuilder) add(v Value) {
	if len(l.b) == 0 {
		l.b = append(l.b, '[')
	} else {
		l.b = append(l.b, ',')
	}
	l.b = v.AppendJSON(l.b)
}

func (l *listBuilder) value() Value {
	if len(l.b) > maxValue {
		return Value{}
	}
	if len(l.b) == 0 {
		l.b = append(l.b, '[')
	}
	return Value{kind: Array, raw: append(l.b, ']')}
}

func (v Value) length() int64 {
	var n int64
	for range items(v.raw) {
		n++
	}
	return n
}

// holds reports whether an array has an item equal to want.
func holds(array, want Value) bool {
	for x := range items(array.raw) {
		if equal(x, want) {
			return true
		}
	}
	return false
}

// arrayContains searches for an item equal to the second argument. If the third argument is
// true, it searches for an object that has all members of the second argument.
func arrayContains(a []Value) Value {
	partial := len(a) == 3 && a[2].kind == Boolean && a[2].truth
	if a[0].kind != Array || a[1].kind == Undefined || len(a) == 3 && a[2].kind > Undefined && a[2].kind != Boolean {
		return Value{}
	}
	if !partial || a[1].kind != Object {
		return boolValue(holds(a[0], a[1]))
	}
	for x := range items(a[0].raw) {
		if x.kind == Object && includes(x, a[1]) {
			return boolValue(true)
		}
	}
	return boolValue(false)
}

// includes reports whether an object has every member of part.
func includes(object, part Value) bool {
	for key, want := range members(part.raw) {
		if !equal(object.find(step{name: string(key), index: -1}), want) {
			return false
		}
	}
	return true
}

// arraySlice returns items from start on, counted from the end if start is negative.
func arraySlice(a []Value) Value {
	start, ok := a[1].integer()
	if a[0].kind != Array || !ok {
		return Value{}
	}
	length := a[0].length()
	count := length
	if len(a) == 3 {
		if count, ok = a[2].integer(); !ok {
			return Value{}
		}
	}
	if start < 0 {
		start = max(start+length, 0)
	}
	var l listBuilder
	var n int64
	for x := range items(a[0].raw) {
		if n >= start && n-start < count {
			l.add(x)
		}
		n++
	}
	return l.value()
}

// set returns an array of the items of several arrays without repeats.
func set(args []Value, keep func(Value) bool, from ...Value) Value {
	if args[0].kind != Array || args[1].kind != Array {
		return Value{}
	}
	seen := map[string]bool{}
	var l listBuilder
	for _, array := range from {
		for x := range items(array.raw) {
			key := string(appendCanonical(nil, x))
			if !seen[key] && keep(x) {
				seen[key] = true
				l.add(x)
			}
		}
	}
	return l.value()
}

// objectToArray returns one object for each member: its name as k and its value as v, or with
// the given names.
func objectToArray(a []Value) Value {
	names := [2]Value{textValue("k"), textValue("v")}
	copy(names[:], a[1:])
	if a[0].kind != Object || names[0].kind != String || names[1].kind != String || equal(names[0], names[1]) {
		return Value{}
	}
	var l listBuilder
	for key, v := range members(a[0].raw) {
		one := append(names[0].AppendJSON([]byte{'{'}), ':')
		one = append(textValue(key).AppendJSON(one), ',')
		one = append(names[1].AppendJSON(one), ':')
		l.add(Value{kind: Object, raw: append(v.AppendJSON(one), '}')})
	}
	return l.value()
}
