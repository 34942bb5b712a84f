// Package document reads the JSON documents that clients send. It checks them, extracts the
// values that the store needs (id, ttl, partition key), drops the properties that the store
// writes itself (_rid, _self, _etag, _ts, ...), and keeps every other byte unchanged.
//
// One pass over the text does all of this. Nothing is decoded and encoded again, so a document
// is stored and served in the client's own spelling.
//
// The package is pure: no I/O, no goroutines, no shared state.
package document

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
)

// Errors of Parse other than *SyntaxError.
var (
	ErrNotObject = errors.New("a document must be a JSON object")
	ErrNoID      = errors.New("the document has no id, or it is not a non-empty string")
	ErrTTL       = errors.New("ttl must be -1 or a whole number from 1 to 2147483647")
	ErrKeyValue  = errors.New("a partition key value must be a string, a number, a boolean or null")
)

// Document is a checked document. It aliases the text that it was parsed from.
type Document struct {
	ID  string
	TTL int32 // in seconds; -1: never expires, 0: absent
	Key epk.Key

	text  []byte // the argument of Parse
	spans []span // of the kept members, in order, each from its name to the end of its value

	// The usual space of Key and spans, to save allocations.
	keySpace  [1]epk.Value
	spanSpace [2]span
}

type span struct{ from, to int }

// Path is a partition key path, split at its slashes: "/a/b" is ["a" "b"].
type Path []string

// IsSystemProperty reports whether the store writes the property. A client's value for it is
// dropped.
func IsSystemProperty(name string) bool {
	switch name {
	case "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn":
		return true
	}
	return false
}

// Parse checks text and extracts the document's id, ttl and partition key at paths. Its errors
// are *SyntaxError and the ones listed above.
func Parse(text []byte, paths []Path) (*Document, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	d := &Document{text: text}
	d.spans = d.spanSpace[:0]
	if len(paths) <= len(d.keySpace) {
		d.Key = d.keySpace[:len(paths)]
	} else {
		d.Key = make(epk.Key, len(paths))
	}
	s := &scanner{text: text}
	if s.peek() != '{' {
		if _, err := s.value(0); err != nil {
			return nil, err
		}
		return nil, ErrNotObject
	}
	dropped := false // the previous member was dropped
	err := s.object(0, func(from int, name, value []byte) error {
		if isEscaped(name) {
			name = []byte(strconv.Quote(Unquote(name)))
		}
		if IsSystemProperty(string(name[1 : len(name)-1])) {
			dropped = true
			return nil
		}
		if last := len(d.spans) - 1; last >= 0 && !dropped {
			d.spans[last].to = s.at
		} else {
			d.spans = append(d.spans, span{from, s.at})
		}
		dropped = false
		return d.member(name, value, paths)
	})
	if err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	if d.ID == "" {
		return nil, ErrNoID
	}
	return d, nil
}

// member extracts the values that the store needs from one top-level member.
func (d *Document) member(name, value []byte, paths []Path) error {
	switch string(name) {
	case `"id"`:
		d.ID = ""
		if value[0] == '"' {
			d.ID = Unquote(value)
		}
	case `"ttl"`:
		ttl, err := parseTTL(value)
		if err != nil {
			return err
		}
		d.TTL = ttl
	}
	for i, path := range paths {
		if len(name)-2 == len(path[0]) && string(name[1:len(name)-1]) == path[0] {
			v, err := keyValue(value, path[1:])
			if err != nil {
				return err
			}
			d.Key[i] = v
		}
	}
	return nil
}

func isEscaped(name []byte) bool {
	for _, c := range name {
		if c == '\\' {
			return true
		}
	}
	return false
}

func parseTTL(value []byte) (int32, error) {
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n != math.Trunc(n) || n == 0 || n < -1 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%w, not %s", ErrTTL, value)
	}
	return int32(n), nil
}

// keyValue returns the scalar at path below value; undefined if there is none.
func keyValue(value []byte, path Path) (epk.Value, error) {
	for _, name := range path {
		var found bool
		value, found = Member(value, name)
		if !found {
			return epk.Undefined(), nil
		}
	}
	switch value[0] {
	case '"':
		return epk.String(Unquote(value)), nil
	case 't', 'f':
		return epk.Bool(value[0] == 't'), nil
	case 'n':
		return epk.Null(), nil
	case '{', '[':
		return epk.Value{}, ErrKeyValue
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return epk.Value{}, fmt.Errorf("%w: %s is out of range", ErrKeyValue, value)
	}
	return epk.Number(f), nil
}
