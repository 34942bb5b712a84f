package query

// selectQuery is the one statement of the language. Its expressions hold no
// parentheses: the tree shows the grouping.
type selectQuery struct {
	condition  bool // FROM ... WHERE ... of a patch: no SELECT
	distinct   bool
	top        *count
	star       bool
	value      bool // SELECT VALUE: items has the one expression
	items      []selectItem
	collection string
	alias      string
	where      expr // nil: none
	orderBy    []orderItem
	offset     *count // set together with limit
	limit      *count

	params    []string // names in order of first use; paramRef.index points here
	aggregate bool     // items have a COUNT
}

type selectItem struct {
	expr  expr
	alias string // as written after AS
	name  string // the member it becomes
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
	// path is the document (no steps) or something at fixed steps inside it.
	path struct{ steps []step }
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
	// countCall is the aggregate COUNT(arg); index numbers them in the query.
	countCall struct {
		arg   expr
		index int
	}
	// arrayExpr and objectExpr construct a value.
	arrayExpr  struct{ items []expr }
	objectExpr struct{ members []objectMember }
	// group marks parentheses. The parser takes it off again.
	group struct{ x expr }
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

func (*literal) expression()     {}
func (*paramRef) expression()    {}
func (*path) expression()        {}
func (*member) expression()      {}
func (*unaryExpr) expression()   {}
func (*binaryExpr) expression()  {}
func (*logicalExpr) expression() {}
func (*ternaryExpr) expression() {}
func (*betweenExpr) expression() {}
func (*inExpr) expression()      {}
func (*likeExpr) expression()    {}
func (*callExpr) expression()    {}
func (*countCall) expression()   {}
func (*arrayExpr) expression()   {}
func (*objectExpr) expression()  {}
func (*group) expression()       {}

// eachPart calls f for the expressions right inside of e.
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
	case *countCall:
		f(e.arg)
	case *arrayExpr:
		each(e.items, f)
	case *objectExpr:
		for _, m := range e.members {
			f(m.x)
		}
	case *group:
		f(e.x)
	}
}

func each(list []expr, f func(expr)) {
	for _, e := range list {
		f(e)
	}
}
