package query

// pathTree finds all paths of one clause in a single walk over the document, and stops after
// the last one. Each path has a slot for its value.
type pathTree struct {
	root  pathNode
	slots int
	whole int // slot of the document itself, -1 if not needed
}

// pathNode is one object on a path.
type pathNode struct {
	slot int // -1: only an intermediate object
	kids []pathKid
}

type pathKid struct {
	name string
	node *pathNode
}

var emptyTree = pathTree{root: pathNode{slot: -1}, whole: -1}

func newPathTree() *pathTree {
	t := emptyTree
	return &t
}

// add returns the slot of a path, and the steps that the walk does not cover: those from the
// first array index on.
func (t *pathTree) add(steps []step) (slot int, rest []step) {
	n := &t.root
	for i, s := range steps {
		if s.index >= 0 {
			rest = steps[i:]
			break
		}
		n = n.kid(s.name)
	}
	at := &n.slot
	if n == &t.root {
		at = &t.whole
	}
	if *at < 0 {
		*at = t.slots
		t.slots++
	}
	return *at, rest
}

func (n *pathNode) kid(name string) *pathNode {
	for i := range n.kids {
		if n.kids[i].name == name {
			return n.kids[i].node
		}
	}
	k := &pathNode{slot: -1}
	n.kids = append(n.kids, pathKid{name: name, node: k})
	return k
}

// extract fills the slots, whose number must be that of the tree. A missing path is undefined.
func (t *pathTree) extract(doc []byte, slots []Value) {
	clear(slots)
	left := len(slots)
	if t.whole >= 0 {
		slots[t.whole] = jsonValue(trim(doc))
		left--
	}
	if i := skipBlanks(doc, 0); left > 0 && i < len(doc) && doc[i] == '{' {
		w := walk{doc: doc, slots: slots, left: left}
		w.object(i, &t.root)
	}
}

type walk struct {
	doc   []byte
	slots []Value
	left  int // slots not found yet
}

// object walks the object at doc[i]. It returns the index after it, or -1 if all slots are
// filled or the text is malformed.
func (w *walk) object(i int, n *pathNode) int {
	b := w.doc
	i = skipBlanks(b, i+1)
	for i < len(b) && b[i] == '"' {
		key, escapes, at := memberKey(b, i)
		var end int
		if kid := n.match(plainKey(key, escapes)); kid == nil {
			end = skipValue(b, at)
		} else if end = w.value(at, kid); end < 0 {
			return -1
		}
		i = skipBlanks(b, end)
		if i >= len(b) || b[i] != ',' {
			break
		}
		i = skipBlanks(b, i+1)
	}
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	return -1
}

// value reads the value at doc[i] for node n and returns the index after it, or -1.
func (w *walk) value(i int, n *pathNode) int {
	b := w.doc
	var end int
	if len(n.kids) > 0 && i < len(b) && b[i] == '{' {
		if end = w.object(i, n); end < 0 {
			return -1
		}
	} else {
		end = skipValue(b, i)
	}
	if n.slot >= 0 && w.slots[n.slot].kind == Undefined {
		w.slots[n.slot] = jsonValue(b[i:end])
		w.left--
	}
	if w.left == 0 {
		return -1
	}
	return end
}

// match returns the node for a key, or nil.
func (n *pathNode) match(key []byte) *pathNode {
	for i := range n.kids {
		if string(key) == n.kids[i].name {
			return n.kids[i].node
		}
	}
	return nil
}
