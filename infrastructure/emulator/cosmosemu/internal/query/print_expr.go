package query

import "strconv"

// expr prints e without parentheses around it.
func (w *printer) expr(e expr) {
	switch e := e.(type) {
	case *literal:
		w.literal(e.v)
	case *paramRef:
		w.text(e.name)
	case *path:
		w.path(e)
	case *member:
		w.operand(e.base)
		w.text("[")
		w.expr(e.index)
		w.text("]")
	case *unaryExpr:
		w.text(e.op)
		if e.op == "NOT" {
			w.text(" ")
		}
		w.operand(e.x)
	case *binaryExpr:
		w.operand(e.x)
		w.text(" ", e.op, " ")
		w.operand(e.y)
	case *logicalExpr:
		for i, x := range e.terms {
			if i > 0 {
				w.text(" ", e.op, " ")
			}
			w.operand(x)
		}
	case *ternaryExpr:
		w.operand(e.cond)
		w.text(" ? ")
		w.operand(e.then)
		w.text(" : ")
		w.operand(e.other)
	case *betweenExpr:
		w.operand(e.x)
		w.not(e.not)
		w.text(" BETWEEN ")
		w.operand(e.low)
		w.text(" AND ")
		w.operand(e.high)
	case *inExpr:
		w.operand(e.x)
		w.not(e.not)
		w.text(" IN (")
		w.list(e.list)
		w.text(")")
	case *likeExpr:
		w.operand(e.x)
		w.not(e.not)
		w.text(" LIKE ")
		w.operand(e.pattern)
		if e.escape != 0 {
			w.text(" ESCAPE ")
			w.literal(textValue(string(e.escape)))
		}
	case *callExpr:
		w.text(e.fn.name, "(")
		w.list(e.args)
		w.text(")")
	case *aggregateCall:
		w.text(e.kind.String(), "(")
		w.expr(e.arg)
		w.text(")")
	case *subqueryExpr:
		w.text(e.op, "(")
		w.query(e.query)
		w.text(")")
	case *arrayExpr:
		w.text("[")
		w.list(e.items)
		w.text("]")
	case *objectExpr:
		w.text("{")
		for i, m := range e.members {
			if i > 0 {
				w.text(", ")
			}
			w.literal(textValue(m.name))
			w.text(": ")
			w.expr(m.x)
		}
		w.text("}")
	}
}

// operand prints e, in parentheses if it is compound.
func (w *printer) operand(e expr) {
	switch e.(type) {
	case *unaryExpr, *binaryExpr, *logicalExpr, *ternaryExpr, *betweenExpr, *inExpr, *likeExpr:
		w.text("(")
		w.expr(e)
		w.text(")")
	default:
		w.expr(e)
	}
}

func (w *printer) not(not bool) {
	if not {
		w.text(" NOT")
	}
}

func (w *printer) list(list []expr) {
	for i, x := range list {
		if i > 0 {
			w.text(", ")
		}
		w.expr(x)
	}
}

func (w *printer) literal(v Value) {
	if v.kind == Undefined && v.raw != nil {
		w.text(string(v.raw))
		return
	}
	if v.kind == Undefined {
		w.text("undefined")
		return
	}
	w.b.Write(v.AppendJSON(nil))
}

// path prints the name of the source and the steps: .name if the name is an identifier,
// otherwise ["name"]; [1] for an index.
func (w *printer) path(p *path) {
	switch src := p.at.src; {
	case w.ids:
		w.text("$", strconv.Itoa(src.index))
	case src.name == "":
		w.text(src.collection)
	default:
		w.text(p.at.name)
	}
	for _, s := range p.steps {
		switch {
		case s.index >= 0:
			w.text("[", strconv.FormatInt(s.index, 10), "]")
		case isName(s.name):
			w.text(".", s.name)
		default:
			w.text("[")
			w.literal(textValue(s.name))
			w.text("]")
		}
	}
}

// isName reports whether s is an ASCII identifier that is not reserved.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != "" && keyword(s) == ""
}
