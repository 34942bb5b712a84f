package query

// selectQuery is one query: the statement itself or a sub-query. Its expressions contain no
// parentheses, because the tree represents the grouping.
type selectQuery struct {
	condition bool // FROM ... WHERE ... of a patch: no SELECT
	distinct  bool
	top       *count
	star      bool
	value     bool // SELECT VALUE: items contains one expression
	items     []selectItem
	from      []*source // none: a query without FROM
	where     expr      // nil: none
	groupBy   []expr
	orderBy   []orderItem
	offset    *count // set together with limit
	limit     *count

	aggregates []*aggregateCall // of SELECT, without those in sub-queries
	groupAt    int              // index of the first value of groupBy in env.group
	groupIDs   map[string]int   // index in groupBy, by identity
	one        [1]*source       // backing array of from, because most queries have one source
}

// source is one input of FROM. Expressions refer to the document, or to a variable that
// takes each value of the source.
type source struct {
	name       string       // the name in expressions; "": none
	collection string       // name of the container, if the source is the document
	base       *path        // otherwise the input: a path
	query      *selectQuery // or a sub-query
	each       bool         // name IN ...: iterate over the elements
	index      int          // in env.vars; isDocument: the document
}

// isDocument is the index of the source that is the document.
const isDocument = -1

// ref is the name at the start of a path with the source that it refers to.
type ref struct {
	name string
	pos  int
	src  *source
}

type selectItem struct {
	expr  expr
	alias string // as written after AS
	name  string // name of the member in the row
}

type orderItem struct {
	path *path
	desc bool
}

// count is the number after TOP, OFFSET or LIMIT: a literal or a parameter.
type count struct {
	n     int64
	param *paramRef
}

// expr is one of the types below.
type expr interface{ expression() }

type (
	// literal is a constant of the text.
	literal struct{ v Value }
	// paramRef is a parameter.
	paramRef struct {
		name  string
		index int
		pos   int
	}
	// path is a source (no steps) or a value at fixed steps inside it.
	path struct {
		at    *ref
		steps []step
	}
	// member looks up a computed name or index, or one inside a computed value.
	member struct{ base, index expr }
	// unaryExpr is one of - + ~ NOT.
	unaryExpr struct {
		op string
		x  expr
	}
	// binaryExpr is one of * / % + - < > <= >= = != & ^ | || ??.
	binaryExpr struct {
		op   string
		x, y expr
	}
	// logicalExpr is AND or OR over two or more terms.
	logicalExpr struct {
		op    string
		terms []expr
	}
	// ternaryExpr is cond ? then : other.
	ternaryExpr struct{ cond, then, other expr }
	// betweenExpr is x [NOT] BETWEEN low AND high.
	betweenExpr struct {
		not          bool
		x, low, high expr
	}
	// inExpr is x [NOT] IN (list).
	inExpr struct {
		not  bool
		x    expr
		list []expr
	}
	// likeExpr is x [NOT] LIKE pattern [ESCAPE 'c'].
	likeExpr struct {
		not        bool
		x, pattern expr
		escape     rune // 0: none
		pos        int
	}
	// callExpr is a scalar function.
	callExpr struct {
		fn   *function
		args []expr
		pos  int
	}
	// aggregateCall is a call of an aggregate such as COUNT(arg). index numbers the calls of
	// the statement.
	aggregateCall struct {
		kind  aggregateKind
		arg   expr
		index int
	}
	// subqueryExpr is (SELECT ...), or EXISTS or ARRAY of one.
	subqueryExpr struct {
		op    string // "", EXISTS, ARRAY
		query *selectQuery
	}
	// arrayExpr and objectExpr construct a value.
	arrayExpr  struct{ items []expr }
	objectExpr struct{ members []objectMember }
	// parens marks parentheses during parsing. The parser removes it again.
	parens struct{ x expr }
)

type objectMember struct {
	name string
	x    expr
}

// step is a member name, or an array index when name is not used.
type step struct {
	name  string
	index int64 // -1: a name
}

func (*literal) expression()       {}
func (*paramRef) expression()      {}
func (*path) expression()          {}
func (*member) expression()        {}
func (*unaryExpr) expression()     {}
func (*binaryExpr) expression()    {}
func (*logicalExpr) expression()   {}
func (*ternaryExpr) expression()   {}
func (*betweenExpr) expression()   {}
func (*inExpr) expression()        {}
func (*likeExpr) expression()      {}
func (*callExpr) expression()      {}
func (*aggregateCall) expression() {}
func (*subqueryExpr) expression()  {}
func (*arrayExpr) expression()     {}
func (*objectExpr) expression()    {}
func (*parens) expression()        {}

// eachPart calls f for the direct sub-expressions of e.
func eachPart(e expr, f func(expr)) {
	switch e := e.(type) {
	case *member:
		f(e.base)
		f(e.index)
	case *unaryExpr:
		f(e.x)
	case *binaryExpr:
		f(e.x)
		f(e.y)
	case *logicalExpr:
		each(e.terms, f)
	case *ternaryExpr:
		f(e.cond)
		f(e.then)
		f(e.other)
	case *betweenExpr:
		f(e.x)
		f(e.low)
		f(e.high)
	case *inExpr:
		f(e.x)
		each(e.list, f)
	case *likeExpr:
		f(e.x)
		f(e.pattern)
	case *callExpr:
		each(e.args, f)
	case *aggregateCall:
		f(e.arg)
	case *subqueryExpr:
		e.query.eachPart(f)
	case *arrayExpr:
		each(e.items, f)
	case *objectExpr:
		for _, m := range e.members {
			f(m.x)
		}
	case *parens:
		f(e.x)
	}
}

// eachPart calls f for the expressions of a query.
func (q *selectQuery) eachPart(f func(expr)) {
	for _, it := range q.items {
		f(it.expr)
	}
	for _, src := range q.from {
		if src.base != nil {
			f(src.base)
		}
		if src.query != nil {
			src.query.eachPart(f)
		}
	}
	if q.where != nil {
		f(q.where)
	}
	each(q.groupBy, f)
}

func each(list []expr, f func(expr)) {
	for _, e := range list {
		f(e)
	}
}
