package patch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

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
	sum := f + g
	if ferr != nil || gerr != nil || math.IsInf(sum, 0) {
		return nil, errors.New("the sum of incr is out of range")
	}
	format := byte('f') // because not every client reads a whole number with an exponent
	if a := math.Abs(sum); a < 1e-6 || a >= 1e21 {
		format = 'g'
	}
	return strconv.AppendFloat(nil, sum, format, -1, 64), nil
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
