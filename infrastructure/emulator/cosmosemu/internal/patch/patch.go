package patch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
)

// MaxOperations is the service's limit per patch.
const MaxOperations = 10

// Error contains the operation that failed and the reason.
type Error struct {
	Index  int // of the operation, from 0
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("For Operation(%d): %s. Learn more: https://aka.ms/cosmosdbpatchdocs", e.Index+1, e.Reason)
}

// Patch is a parsed request.
type Patch struct {
	Condition  string // a query condition, "" for none
	Operations []Operation
}

// Operation is one change.
type Operation struct {
	Op    string
	Path  []string // decoded parts
	From  []string // of move
	Value []byte   // JSON, nil if absent
}

// Parse reads {"condition"?, "operations": [...]}, or the bare array of operations that
// @azure/cosmos sends without a condition.
func Parse(text []byte) (*Patch, error) {
	p := &Patch{}
	var operations []byte
	err := document.EachMember(text, func(name string, value []byte) error {
		switch name {
		case "condition":
			if value[0] != '"' {
				return errors.New("the condition of a patch must be a string")
			}
			p.Condition = document.Unquote(value)
		case "operations":
			operations = value
		}
		return nil
	})
	if errors.Is(err, document.ErrNotObject) {
		operations, err = text, nil
	}
	if err == nil && operations == nil {
		err = errors.New("a patch needs operations")
	}
	if err == nil {
		err = document.Elements(operations, func(element []byte) error {
			op, err := parseOperation(element, len(p.Operations))
			p.Operations = append(p.Operations, op)
			return err
		})
	}
	switch {
	case err != nil:
		return nil, err
	case len(p.Operations) == 0:
		return nil, errors.New("a patch needs at least one operation")
	case len(p.Operations) > MaxOperations:
		return nil, fmt.Errorf("a patch has at most %d operations, this one %d", MaxOperations, len(p.Operations))
	}
	return p, nil
}

func parseOperation(text []byte, index int) (op Operation, err error) {
	bad := func(format string, args ...any) error { return &Error{index, fmt.Sprintf(format, args...)} }
	err = document.EachMember(text, func(name string, value []byte) error {
		if name == "value" {
			op.Value = value
			return nil
		}
		if name != "op" && name != "path" && name != "from" {
			return nil
		}
		if value[0] != '"' {
			return bad("%s must be a string", name)
		}
		s := document.Unquote(value)
		var err error
		switch name {
		case "op":
			op.Op = strings.ToLower(s)
		case "path":
			op.Path, err = parsePath(s)
		case "from":
			op.From, err = parsePath(s)
		}
		if err != nil {
			return bad("%v", err)
		}
		return nil
	})
	switch {
	case errors.Is(err, document.ErrNotObject):
		return op, bad("not an object")
	case err != nil:
		return op, err
	case !slices.Contains([]string{"add", "set", "replace", "remove", "incr", "move"}, op.Op):
		return op, bad("%q is not one of add, set, replace, remove, incr, move", op.Op)
	case op.Path == nil:
		return op, bad("the path is missing")
	case op.Op == "move" && op.From == nil:
		return op, bad("move needs from")
	case op.Value == nil && op.Op != "remove" && op.Op != "move":
		return op, bad("%s needs a value", op.Op)
	}
	return op, nil
}

// parsePath reads a JSON pointer (RFC 6901).
func parsePath(text string) ([]string, error) {
	if !strings.HasPrefix(text, "/") || text == "/" {
		return nil, fmt.Errorf("the path %q must start with / and name a property", text)
	}
	parts := strings.Split(text[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// Apply returns the document after all operations, or an *Error.
func Apply(doc []byte, operations []Operation) ([]byte, error) {
	root := leaf(doc)
	for i := range operations {
		if reason := apply(root, &operations[i]); reason != nil {
			return nil, &Error{i, reason.Error()}
		}
	}
	return root.append(make([]byte, 0, len(doc)+64)), nil
}

func apply(root *node, op *Operation) error {
	if op.Op == "move" {
		return move(root, op)
	}
	parent, err := descend(root, op.Path, op.Op)
	if err != nil {
		return err
	}
	last := op.Path[len(op.Path)-1]
	switch op.Op {
	case "remove":
		_, err = remove(parent, last)
		return err
	case "incr":
		return increment(parent, last, op.Value)
	}
	return put(parent, last, leaf(op.Value), op.Op)
}

// descend returns the object or array that contains the last part of path.
func descend(n *node, path []string, op string) (*node, error) {
	for i, part := range path {
		if !n.open() {
			return nil, fmt.Errorf("/%s is not an object or array", strings.Join(path[:i], "/"))
		}
		if i == len(path)-1 {
			break
		}
		child, err := child(n, part)
		if err != nil && n.kind == '{' {
			return nil, fmt.Errorf("%s Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: '%s'", operationName(op), strings.Join(path[:i+1], "/"))
		}
		if err != nil {
			return nil, fmt.Errorf("/%s does not exist: %w", strings.Join(path[:i+1], "/"), err)
		}
		n = child
	}
	return n, nil
}

// operationName returns the name of an operation in the service's messages.
func operationName(op string) string { return strings.ToUpper(op[:1]) + op[1:] }

func child(n *node, part string) (*node, error) {
	if n.kind == '{' {
		if i := n.find(part); i >= 0 {
			return n.members[i].value, nil
		}
		return nil, fmt.Errorf("no property %q", part)
	}
	i, err := index(part, len(n.items))
	if err != nil {
		return nil, err
	}
	return n.items[i], nil
}

// index reads an array index below n.
func index(part string, n int) (int, error) {
	i, err := strconv.Atoi(part)
	if err != nil || i < 0 || part != strconv.Itoa(i) {
		return 0, fmt.Errorf("%q is not an array index", part)
	}
	if i >= n {
		return 0, fmt.Errorf("index %d is outside of an array of %d", i, n)
	}
	return i, nil
}

// put implements add (arrays grow), set (arrays keep their length, except for the index after
// the end) and replace (the target must exist).
func put(n *node, part string, value *node, op string) error {
	if n.kind == '{' {
		if op == "replace" && n.find(part) < 0 {
			return fmt.Errorf("replace of %q, which does not exist", part)
		}
		n.set(part, value)
		return nil
	}
	if part == "-" && op != "replace" {
		n.items = append(n.items, value)
		return nil
	}
	limit := len(n.items) + 1
	if op == "replace" {
		limit--
	}
	i, err := index(part, limit)
	switch {
	case err != nil:
		return err
	case op == "add" || i == len(n.items):
		n.items = slices.Insert(n.items, i, value)
	default:
		n.items[i] = value
	}
	return nil
}

func remove(n *node, part string) (*node, error) {
	if n.kind == '{' {
		i := n.find(part)
		if i < 0 {
			return nil, fmt.Errorf("removal of %q, which does not exist", part)
		}
		gone := n.members[i].value
		n.members = slices.Delete(n.members, i, i+1)
		return gone, nil
	}
	i, err := index(part, len(n.items))
	if err != nil {
		return nil, err
	}
	gone := n.items[i]
	n.items = slices.Delete(n.items, i, i+1)
	return gone, nil
}

// increment adds to a number. A missing property is set to the value.
func increment(n *node, part string, value []byte) error {
	if n.kind == '{' && n.find(part) < 0 {
		if _, err := strconv.ParseFloat(string(value), 64); err != nil {
			return fmt.Errorf("incr by %s, which is not a number", value)
		}
		n.set(part, leaf(value))
		return nil
	}
	target, err := child(n, part)
	if err != nil {
		return err
	}
	sum, err := add(target.append(nil), value)
	if err != nil {
		return err
	}
	*target = *leaf(sum)
	return nil
}

// add adds two JSON numbers, as integers if both are and the sum fits.
func add(a, b []byte) ([]byte, error) {
	x, xerr := strconv.ParseInt(string(a), 10, 64)
	y, yerr := strconv.ParseInt(string(b), 10, 64)
	if xerr == nil && yerr == nil {
		if sum := x + y; (sum > x) == (y > 0) {
			return strconv.AppendInt(nil, sum, 10), nil
		}
	}
	for _, text := range [][]byte{a, b} {
		if len(text) == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
			return nil, fmt.Errorf("incr with %s, which is not a number", text)
		}
	}
	f, ferr := strconv.ParseFloat(string(a), 64)
	g, gerr := strconv.ParseFloat(string(b), 64)
	if sum := f + g; ferr == nil && gerr == nil && !math.IsInf(sum, 0) {
		return strconv.AppendFloat(nil, sum, 'g', -1, 64), nil
	}
	return nil, errors.New("the sum of incr is out of range")
}

func move(root *node, op *Operation) error {
	if len(op.Path) > len(op.From) && slices.Equal(op.Path[:len(op.From)], op.From) {
		return errors.New("a value cannot be moved into itself")
	}
	from, err := descend(root, op.From, op.Op)
	if err != nil {
		return err
	}
	value, err := remove(from, op.From[len(op.From)-1])
	if err != nil {
		return err
	}
	to, err := descend(root, op.Path, op.Op)
	if err != nil {
		return err
	}
	return put(to, op.Path[len(op.Path)-1], value, "add")
}
