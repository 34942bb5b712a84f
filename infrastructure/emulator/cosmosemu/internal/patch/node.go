package patch

import (
	"bytes"
	"encoding/json"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
)

// node is a JSON value. It is parsed only if a path leads into it.
type node struct {
	raw     []byte // the text, until it is parsed
	kind    byte   // '{' or '[' after parsing, otherwise 0
	members []member
	items   []*node
}

type member struct {
	name  string
	value *node
}

func leaf(raw []byte) *node { return &node{raw: raw} }

// open parses an object or array. It returns false for a scalar. The text is valid JSON.
func (n *node) open() bool {
	if n.kind != 0 {
		return true
	}
	text := bytes.TrimLeft(n.raw, " \t\r\n")
	switch text[0] {
	case '{':
		_ = document.EachMember(text, func(name string, value []byte) error { // valid text has no errors
			n.set(name, leaf(value))
			return nil
		})
	case '[':
		_ = document.Elements(text, func(element []byte) error { // valid text has no errors
			n.items = append(n.items, leaf(element))
			return nil
		})
	default:
		return false
	}
	n.kind, n.raw = text[0], nil
	return true
}

// find returns the index of a member, -1 if there is none.
func (n *node) find(name string) int {
	for i := range n.members {
		if n.members[i].name == name {
			return i
		}
	}
	return -1
}

func (n *node) set(name string, value *node) {
	if i := n.find(name); i >= 0 {
		n.members[i].value = value
		return
	}
	n.members = append(n.members, member{name, value})
}

func (n *node) append(dst []byte) []byte {
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			name, _ := json.Marshal(m.name) // a string never fails
			dst = append(append(dst, name...), ':')
			dst = m.value.append(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}
