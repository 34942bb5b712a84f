package query

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Bound is a query with its parameters, ready to run over documents. It carries
// scratch space: use it from one goroutine at a time.
type Bound struct {
	q      *Query
	args   []Value // by paramRef.index
	window Window

	where     cond // nil: every document matches
	whereTree *pathTree
	whereEnv  env

	row     projector
	rowTree *pathTree
	rowEnv  env
	counts  []scalar // argument of each COUNT

	keys     []pathNodeRef
	keysTree *pathTree
	keysEnv  env
}

// Window cuts the sequence of rows: skip Offset, then at most Limit. It stands
// for TOP as well as for OFFSET ... LIMIT.
type Window struct {
	Offset int64
	Limit  int64 // -1: no limit
}

// Bind puts the parameters in. The error is a *BindError, or an *UnsupportedError
// for a construct that depends on its values. Parameters the query does not name
// are ignored. The Bound refers to the bytes of params.
func (q *Query) Bind(params Params) (*Bound, error) {
	b := &Bound{q: q, window: Window{Limit: -1}, args: make([]Value, len(q.root.params))}
	for i, name := range q.root.params {
		raw, ok := params[name]
		if !ok {
			return nil, &BindError{Param: name, Msg: "the query uses it, but the request has no value for it"}
		}
		if !json.Valid(raw) {
			return nil, &BindError{Param: name, Msg: "its value is not JSON"}
		}
		b.args[i] = parsedNumber(jsonValue(trim(raw)))
	}
	if err := b.bindWindow(); err != nil {
		return nil, err
	}
	return b, b.compile()
}

// bindWindow resolves TOP, OFFSET and LIMIT.
func (b *Bound) bindWindow() (err error) {
	s := b.q.root
	if s.top != nil {
		b.window.Limit, err = b.count(s.top)
	}
	if s.offset != nil && err == nil {
		if b.window.Offset, err = b.count(s.offset); err == nil {
			b.window.Limit, err = b.count(s.limit)
		}
	}
	return err
}

func (b *Bound) count(c *count) (int64, error) {
	if c.param == nil {
		return c.n, nil
	}
	n, ok := b.args[c.param.index].integer()
	if !ok || n < 0 {
		return 0, &BindError{Param: c.param.name, Msg: "TOP, OFFSET and LIMIT need a whole number that is not negative"}
	}
	return n, nil
}

// compile makes the three programs of the query: filter, row and sort key.
func (b *Bound) compile() error {
	s := b.q.root
	c := &compiler{b: b}
	if s.where != nil {
		c.tree = newPathTree()
		b.where = dispatch(c.cond(s.where))
		b.whereTree = c.tree
		b.whereEnv.slots = make([]Value, c.tree.slots)
	}
	if !s.star {
		c.tree = newPathTree()
		b.row = c.projector(s)
		b.rowTree = c.tree
		b.rowEnv.slots = make([]Value, c.tree.slots)
	}
	if len(s.orderBy) > 0 {
		c.tree = newPathTree()
		for _, it := range s.orderBy {
			b.keys = append(b.keys, c.path(it.path))
		}
		b.keysTree = c.tree
		b.keysEnv.slots = make([]Value, c.tree.slots)
	}
	return c.err
}

// Query returns the query this was bound from.
func (b *Bound) Query() *Query { return b.q }

// IsSelectAll reports whether Project returns each document unchanged, so that a
// caller need not call it.
func (b *Bound) IsSelectAll() bool { return b.q.root.star }

// Window returns what TOP or OFFSET ... LIMIT ask for.
func (b *Bound) Window() Window { return b.window }

// Match reports whether WHERE is exactly true for the document.
func (b *Bound) Match(doc []byte) bool {
	if b.where == nil {
		return true
	}
	b.whereTree.extract(doc, b.whereEnv.slots)
	return b.where.test(&b.whereEnv) == yes
}

// Project appends the row that the SELECT clause makes of the document, as JSON
// text. ok is false, and nothing is appended, when there is no row: SELECT VALUE
// of something undefined. SELECT * appends the bytes of doc as they are.
// An aggregate query has no row per document: see NewAggregate.
func (b *Bound) Project(dst, doc []byte) (row []byte, ok bool) {
	if b.q.root.star {
		return append(dst, doc...), true
	}
	b.rowTree.extract(doc, b.rowEnv.slots)
	if row, ok = b.row.append(dst, &b.rowEnv); !ok {
		return dst, false
	}
	return row, true
}

// Aggregate collects the documents of a COUNT query.
type Aggregate struct {
	b      *Bound
	counts []int64
}

// NewAggregate starts an aggregation, for queries whose Shape says Aggregate.
func (b *Bound) NewAggregate() *Aggregate {
	return &Aggregate{b: b, counts: make([]int64, len(b.counts))}
}

// Add takes in one matching document: COUNT counts where its argument is defined.
func (a *Aggregate) Add(doc []byte) {
	b := a.b
	b.rowTree.extract(doc, b.rowEnv.slots)
	for i, arg := range b.counts {
		if arg.eval(&b.rowEnv).kind != Undefined {
			a.counts[i]++
		}
	}
}

// AppendRow appends the one row of the result. ok is false when it is undefined.
func (a *Aggregate) AppendRow(dst []byte) (row []byte, ok bool) {
	clear(a.b.rowEnv.slots)
	a.b.rowEnv.counts = slices.Clone(a.counts)
	if row, ok = a.b.row.append(dst, &a.b.rowEnv); !ok {
		return dst, false
	}
	return row, true
}

// String shows the bound query in logs and test failures.
func (b *Bound) String() string {
	return fmt.Sprintf("%s with %d parameters", b.q, len(b.args))
}

// parsedNumber reads a number once for all the comparisons to come.
func parsedNumber(v Value) Value {
	if v.kind == Number && !v.parsed {
		v.num, v.parsed = parseNumber(v.raw), true
	}
	return v
}
