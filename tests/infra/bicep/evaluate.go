package bicep

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Values are string, int64, bool, nil, []any, map[string]any, and references to
// resources and modules.
type (
	resourceRef struct {
		id, name, kind string
		declaration    *Declaration
	}
	moduleRef struct{ scope *scope }
)

// scope is one file with its arguments. Symbols are evaluated on first use.
type scope struct {
	deployment *deployment
	file       *File
	arguments  map[string]any
	known      map[string]any
	busy       map[string]bool
	ids        map[string]bool // of the created resources
}

func (s *scope) errorf(n *Node, format string, args ...any) error {
	return &SyntaxError{Pos: n.Pos, Problem: fmt.Sprintf(format, args...)}
}

// symbol returns the value of a name of this file.
func (s *scope) symbol(n *Node) (any, error) {
	if v, ok := s.known[n.Text]; ok {
		return v, nil
	}
	d := s.file.Find(n.Text)
	if d == nil {
		return nil, s.errorf(n, "%s is not declared", n.Text)
	}
	if s.busy[n.Text] {
		return nil, s.errorf(n, "%s depends on itself", n.Text)
	}
	s.busy[n.Text] = true
	defer delete(s.busy, n.Text)
	v, err := s.declared(n, d)
	if err == nil {
		s.known[n.Text] = v
	}
	return v, err
}

func (s *scope) declared(n *Node, d *Declaration) (any, error) {
	switch d.Keyword {
	case "param":
		if v, ok := s.arguments[d.Name]; ok {
			return v, nil
		}
		if d.Value == nil {
			return nil, s.errorf(n, "parameter %s has no value", d.Name)
		}
		return s.value(d.Value)
	case "var":
		return s.value(d.Value)
	case "resource":
		return s.repeated(d, s.reference)
	default:
		return s.repeated(d, s.module)
	}
}

// repeated evaluates a resource or module, or a list of them if it is declared in a loop.
func (s *scope) repeated(d *Declaration, evaluate func(*Declaration) (any, error)) (any, error) {
	if d.Loop == nil {
		return evaluate(d)
	}
	return s.each(d.Loop, func() (any, error) {
		if created, err := s.created(d); err != nil || !created {
			return nil, err
		}
		return evaluate(d)
	})
}

// value evaluates an expression.
func (s *scope) value(n *Node) (any, error) {
	switch n.Kind {
	case Text:
		return n.Text, nil
	case String:
		return s.interpolate(n)
	case Number:
		i, err := strconv.ParseInt(n.Text, 10, 64)
		if err != nil {
			return nil, s.errorf(n, "%s is too large", n.Text)
		}
		return i, nil
	case Bool:
		return n.Text == "true", nil
	case Null:
		return nil, nil
	case Ident:
		return s.symbol(n)
	case Member:
		of, err := s.value(n.Kids[0])
		if err != nil {
			return nil, err
		}
		return s.member(n, of)
	case Index:
		return s.index(n)
	case Call:
		return s.call(n)
	case Unary, Binary:
		return s.operate(n)
	case Ternary:
		condition, err := s.boolean(n.Kids[0])
		if err != nil {
			return nil, err
		}
		if condition {
			return s.value(n.Kids[1])
		}
		return s.value(n.Kids[2])
	case Array:
		return s.values(n.Kids)
	case For:
		return s.each(n, func() (any, error) { return s.value(n.Kids[1]) })
	case Object:
		return s.object(n)
	default:
		return nil, s.errorf(n, "not an expression")
	}
}

func (s *scope) values(nodes []*Node) ([]any, error) {
	list := make([]any, 0, len(nodes))
	for _, n := range nodes {
		v, err := s.value(n)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// each evaluates an item for each value of the list, with the variable as a symbol.
func (s *scope) each(n *Node, evaluate func() (any, error)) (any, error) {
	v, err := s.value(n.Kids[0])
	if err != nil {
		return nil, err
	}
	over, isList := v.([]any)
	if _, taken := s.known[n.Text]; taken || !isList || s.file.Find(n.Text) != nil {
		return nil, s.errorf(n, "for %s in %T: the name is taken, or this is no list", n.Text, v)
	}
	defer delete(s.known, n.Text)
	items := make([]any, 0, len(over))
	for _, each := range over {
		s.known[n.Text] = each
		item, err := evaluate()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (s *scope) object(n *Node) (any, error) {
	o := map[string]any{}
	for _, property := range n.Kids {
		key, err := s.interpolate(property.Kids[0])
		if err != nil {
			return nil, err
		}
		if _, twice := o[key]; twice {
			return nil, s.errorf(property, "%s is given twice", key)
		}
		if o[key], err = s.value(property.Kids[1]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (s *scope) interpolate(n *Node) (string, error) {
	var b strings.Builder
	for _, kid := range n.Kids {
		v, err := s.value(kid)
		if err != nil {
			return "", err
		}
		switch v := v.(type) {
		case string, int64, bool:
			fmt.Fprint(&b, v)
		default:
			return "", s.errorf(kid, "%T in a string", v)
		}
	}
	return b.String(), nil
}

func (s *scope) boolean(n *Node) (bool, error) {
	v, err := s.value(n)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, s.errorf(n, "%T where a bool is needed", v)
	}
	return b, nil
}

func (s *scope) index(n *Node) (any, error) {
	of, err := s.value(n.Kids[0])
	if err != nil {
		return nil, err
	}
	at, err := s.value(n.Kids[1])
	if err != nil {
		return nil, err
	}
	list, isList := of.([]any)
	i, isInt := at.(int64)
	if !isList || !isInt || i < 0 || i >= int64(len(list)) {
		return nil, s.errorf(n, "there is no item %v in %T", at, of)
	}
	return list[i], nil
}

func (s *scope) member(n *Node, of any) (any, error) {
	switch of := of.(type) {
	case map[string]any:
		if v, ok := of[n.Text]; ok {
			return v, nil
		}
		return nil, s.errorf(n, "there is no %s; there are %v", n.Text, slices.Sorted(maps.Keys(of)))
	case resourceRef:
		switch n.Text {
		case "id":
			return of.id, nil
		case "name":
			return of.name, nil
		case "properties":
			if properties, ok := s.deployment.standins[of.kind]; ok {
				return named(properties, of.name), nil
			}
		}
		return nil, s.errorf(n, "nothing stands in for .%s of %s", n.Text, of.kind)
	case moduleRef:
		if n.Text == "outputs" {
			return of.scope.outputs()
		}
	}
	return nil, s.errorf(n, "there is no .%s in %T", n.Text, of)
}

// named returns the properties with the name of their resource.
func named(properties map[string]any, name string) map[string]any {
	own := maps.Clone(properties)
	for property, v := range own {
		if text, ok := v.(string); ok {
			own[property] = strings.ReplaceAll(text, "{name}", name)
		}
	}
	return own
}

func (s *scope) outputs() (map[string]any, error) {
	outputs := map[string]any{}
	for _, d := range s.file.All("output") {
		v, err := s.value(d.Value)
		if err != nil {
			return nil, err
		}
		if !fits(d.Type, v) {
			return nil, &SyntaxError{Pos: d.Pos, Problem: fmt.Sprintf("output %s is %T, not %s", d.Name, v, d.Type)}
		}
		outputs[d.Name] = v
	}
	return outputs, nil
}

// fits reports whether a value has a type of the dialect.
func fits(typeName string, v any) bool {
	switch v.(type) {
	case string:
		return typeName == "string"
	case int64:
		return typeName == "int"
	case bool:
		return typeName == "bool"
	case []any:
		return typeName == "array"
	case map[string]any:
		return typeName == "object"
	}
	return false
}

func (s *scope) operate(n *Node) (any, error) {
	if n.Text == "&&" || n.Text == "||" {
		left, err := s.boolean(n.Kids[0])
		if err != nil || left == (n.Text == "||") {
			return left, err
		}
		return s.boolean(n.Kids[1])
	}
	operands, err := s.values(n.Kids)
	if err != nil {
		return nil, err
	}
	if n.Kind == Unary {
		switch v := operands[0].(type) {
		case bool:
			if n.Text == "!" {
				return !v, nil
			}
		case int64:
			if n.Text == "-" {
				return -v, nil
			}
		}
		return nil, s.errorf(n, "%s of %T", n.Text, operands[0])
	}
	switch n.Text {
	case "==":
		return operands[0] == operands[1], nil
	case "!=":
		return operands[0] != operands[1], nil
	}
	left, isInt := operands[0].(int64)
	right, areInts := operands[1].(int64)
	if !isInt || !areInts {
		return nil, s.errorf(n, "%T %s %T", operands[0], n.Text, operands[1])
	}
	switch n.Text {
	case "+":
		return left + right, nil
	case "-":
		return left - right, nil
	case "*":
		return left * right, nil
	case "<":
		return left < right, nil
	case ">":
		return left > right, nil
	case "<=":
		return left <= right, nil
	case ">=":
		return left >= right, nil
	}
	return nil, s.errorf(n, "operator %s is not evaluated", n.Text)
}
