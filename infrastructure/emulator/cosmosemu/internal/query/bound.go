package query

import (
	"encoding/json"
	"fmt"
	"time"
)

// Bound is a query with its parameters, ready to run over documents. It contains scratch
// space, so it must be used by one goroutine at a time.
type Bound struct {
	q        *Query
	args     []Value // by paramRef.index
	missing  []bool  // by paramRef.index, for a plan: the request has no value; nil: it has all
	window   Window
	now      time.Time
	random   func() float64
	stop     func() bool
	computed map[string]expr // by name
	inner    *Bound          // yields the documents of FROM (SELECT ...); nil: they come from the container

	// The programs of the clauses.
	shared  *shared
	from    *program
	loops   []loop
	filter  *program
	where   cond // nil: every row
	output  *program
	row     projector
	groupBy *program
	group   *grouping // nil: no groups
	order   *program
	keys    []scalar

	doc []byte // the current document of Each
}

// program holds the values of a document that one clause needs. It reads the document on
// first use.
type program struct {
	tree  pathTree
	env   env
	fresh bool // env contains the values of the current document
}

// Setting contains the inputs of a query apart from documents and parameters.
type Setting struct {
	Now      time.Time      // for the functions of the clock; zero: they are refused
	Computed []Computed     // properties of the container
	Random   func() float64 // from 0 up to 1, for RAND; nil: it is refused
	Stop     func() bool    // asked while loops of FROM run; true ends them; nil: they run to their end
}

// Window restricts the sequence of rows: skip Offset rows, then return at most Limit. It
// represents TOP as well as OFFSET ... LIMIT.
type Window struct {
	Offset int64
	Limit  int64 // -1: no limit
}

// Bind is BindIn without a clock and without computed properties.
func (q *Query) Bind(params Params) (*Bound, error) { return q.BindIn(params, Setting{}) }

// BindIn binds the parameters. The error is a *BindError, or an *UnsupportedError for a
// construct that depends on parameter values. Parameters that the query does not use are
// ignored. The Bound refers to the bytes of params.
func (q *Query) BindIn(params Params, in Setting) (*Bound, error) {
	args := make([]Value, len(q.params))
	var missing []bool
	for i, name := range q.params {
		raw, ok := params[name]
		if !ok && q.plan {
			if missing == nil {
				missing = make([]bool, len(q.params))
			}
			missing[i] = true
			continue
		}
		if !ok {
			return nil, &BindError{Param: name, Msg: "the query uses it, but the request has no value for it"}
		}
		if !json.Valid(raw) {
			return nil, &BindError{Param: name, Msg: "its value is not JSON"}
		}
		args[i] = parsedNumber(jsonValue(trim(raw)))
	}
	return q.bind(args, missing, in)
}

func (q *Query) bind(args []Value, missing []bool, in Setting) (b *Bound, err error) {
	b = &Bound{q: q, args: args, missing: missing, window: Window{Limit: -1}, now: in.Now, random: in.Random, stop: in.Stop}
	if derived := q.root.derived(); derived != nil {
		inner := *q
		inner.root = derived
		if b.inner, err = inner.bind(args, missing, in); err != nil {
			return nil, err
		}
	} else if len(in.Computed) > 0 {
		b.computed = make(map[string]expr, len(in.Computed))
		for _, c := range in.Computed {
			b.computed[c.Name] = c.value
		}
	}
	if err := b.bindWindow(); err != nil || q.plan {
		return b, err
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
	if !ok || n < 0 || n > maxCount {
		return 0, &BindError{Param: c.param.name, Msg: "TOP, OFFSET and LIMIT need a whole number from 0 to 2147483647"}
	}
	return n, nil
}

func (b *Bound) isMissing(p *paramRef) bool { return b.missing != nil && b.missing[p.index] }

// compile compiles the clauses to programs.
func (b *Bound) compile() error {
	q, c := b.q.root, &compiler{b: b}
	if n := b.q.vars + b.q.groups + b.q.aggregates; n > 0 {
		values := make([]Value, n)
		vars, values := values[:b.q.vars], values[b.q.vars:]
		b.shared = &shared{vars: vars, group: values[:b.q.groups], aggregates: values[b.q.groups:], stop: b.stop}
	}
	if len(q.from) > 1 {
		b.from = c.program(func() { b.loops = c.loops(q.from) })
	}
	if q.where != nil {
		b.filter = c.program(func() { b.where = dispatch(c.cond(q.where)) })
	}
	if len(q.groupBy) > 0 || len(q.aggregates) > 0 {
		b.groupBy = c.program(func() { b.group = c.grouping(q) })
	}
	if !b.selectsAll() {
		b.output = c.program(func() { b.row = c.projector(q) })
	}
	if len(q.orderBy) > 0 && b.group == nil {
		b.order = c.program(func() {
			for _, it := range q.orderBy {
				b.keys = append(b.keys, c.path(it.path))
			}
		})
	}
	return c.err
}

// program runs build, whose paths are then found in one walk over the document.
func (c *compiler) program(build func()) *program {
	p := &program{tree: emptyTree, env: env{shared: c.b.shared}}
	c.tree = &p.tree
	build()
	if n := c.tree.slots; n > 0 {
		p.env.slots = make([]Value, n)
	}
	return p
}

// at returns the values of a document for the program.
func (p *program) at(doc []byte) *env {
	if !p.fresh {
		p.tree.extract(doc, p.env.slots)
		p.fresh = true
	}
	return &p.env
}

// Stopped reports whether Setting.Stop has ended the query. Its rows are then incomplete.
func (b *Bound) Stopped() bool {
	return b.shared != nil && b.shared.stopped || b.inner != nil && b.inner.Stopped()
}

// Query returns the query this was bound from.
func (b *Bound) Query() *Query { return b.q }

// selectsAll reports whether the rows are the documents, unchanged.
func (b *Bound) selectsAll() bool {
	q := b.q.root
	return q.star && len(q.from) == 1 && q.from[0].index == isDocument
}

// Window returns the window of TOP or OFFSET ... LIMIT.
func (b *Bound) Window() Window { return b.window }

// String shows the bound query in logs and test failures.
func (b *Bound) String() string {
	return fmt.Sprintf("%s with %d parameters", b.q, len(b.args))
}

// parsedNumber parses a number once, so that later comparisons need not parse it again.
func parsedNumber(v Value) Value {
	if v.kind == Number && !v.parsed {
		v.num, v.parsed = parseNumber(v.raw), true
	}
	return v
}
