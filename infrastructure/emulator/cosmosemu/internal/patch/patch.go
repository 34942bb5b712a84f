// Package patch applies partial updates to a JSON document: the operations add,
// set, replace, remove, incr and move of the service's PATCH.
//
// It parses only the values that an operation changes. Every other byte stays unchanged, so
// member order and number spelling are kept.
//
// The package is pure: no I/O, no goroutines, no shared state.
package patch

import (
	"errors"
	"fmt"
	"slices"
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
