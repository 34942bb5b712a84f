// Package indexing reads indexing policies and decides which paths and orders a policy serves.
//
// Source: Microsoft Learn, Indexing policies in Azure Cosmos DB, and Computed properties.
package indexing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Limits of a policy. Source: Microsoft Learn, Azure Cosmos DB service quotas.
const (
	maxComposites     = 100
	maxCompositePaths = 8
)

// Policy is a valid indexing policy, reduced to the parts that decide on queries. It is stored
// with its container. The zero value indexes everything except _etag.
type Policy struct {
	Off       bool    `json:"off,omitempty"` // mode none
	Paths     []Rule  `json:"paths,omitempty"`
	Composite [][]Key `json:"composite,omitempty"`
}

// Rule includes or excludes the values at a path. With Below it also applies to all paths below.
type Rule struct {
	Path    []string `json:"path"` // Element stands for any element of an array
	Below   bool     `json:"below,omitempty"`
	Include bool     `json:"include,omitempty"`
}

// Key is one property of ORDER BY or of a composite index.
type Key struct {
	Path       []string `json:"path"`
	Descending bool     `json:"descending,omitempty"`
}

// Element is the step of a path from an array to its elements.
const Element = "[]"

type pathText struct {
	Path  string `json:"path"`
	Order string `json:"order"`
}

// Parse reads the text of a policy. The errors describe what the service refuses, too.
func Parse(text []byte) (*Policy, error) {
	var in struct {
		Mode      string       `json:"indexingMode"`
		Automatic *bool        `json:"automatic"`
		Included  []pathText   `json:"includedPaths"`
		Excluded  []pathText   `json:"excludedPaths"`
		Composite [][]pathText `json:"compositeIndexes"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("the indexing policy is invalid: %w", err)
	}
	p := &Policy{}
	switch strings.ToLower(in.Mode) {
	case "", "consistent", "lazy": // the service does not serve lazy to new containers
	case "none":
		if p.Off = true; in.Automatic != nil && *in.Automatic {
			return nil, fmt.Errorf("the indexing mode is none, so automatic must be false")
		}
	default:
		return nil, fmt.Errorf("the indexing mode %q is not consistent, lazy or none", in.Mode)
	}
	if err := p.addRules(in.Included, true); err != nil {
		return nil, err
	}
	if err := p.addRules(in.Excluded, false); err != nil {
		return nil, err
	}
	root := slices.ContainsFunc(p.Paths, func(r Rule) bool { return len(r.Path) == 0 })
	if len(p.Paths) > 0 && !root && !p.Off {
		return nil, fmt.Errorf(`the special mandatory indexing path "/" is not provided in any of the path type sets: include or exclude "/*"`)
	}
	return p, p.addComposite(in.Composite)
}

func (p *Policy) addRules(texts []pathText, include bool) error {
	for _, text := range texts {
		path, end, err := parsePath(text.Path)
		if err != nil {
			return err
		}
		if end == "" && len(path) > 0 {
			return notAccepted(text.Path, len(text.Path))
		}
		p.Paths = append(p.Paths, Rule{Path: path, Below: end != "?", Include: include})
	}
	return nil
}

func (p *Policy) addComposite(indexes [][]pathText) error {
	if len(indexes) > maxComposites {
		return fmt.Errorf("the policy has %d composite indexes: at most %d are allowed", len(indexes), maxComposites)
	}
	for _, texts := range indexes {
		if len(texts) < 2 || len(texts) > maxCompositePaths {
			return fmt.Errorf("a composite index has %d paths: it needs 2 to %d", len(texts), maxCompositePaths)
		}
		var index []Key
		for _, text := range texts {
			path, end, err := parsePath(text.Path)
			switch {
			case err != nil:
				return err
			case len(path) == 0 || end == "*": // /a and /a/? are the same here
				return notAccepted(text.Path, len(text.Path))
			case !slices.Contains([]string{"", "ascending", "descending"}, strings.ToLower(text.Order)):
				return fmt.Errorf("the order %q of composite path %q is not ascending or descending", text.Order, text.Path)
			}
			index = append(index, Key{Path: path, Descending: strings.EqualFold(text.Order, "descending")})
		}
		p.Composite = append(p.Composite, index)
	}
	return nil
}

// Indexed reports whether the values at a path have an index of their own. Wildcards do not
// cover computed properties. Among rules that apply, the deepest decides, and of two equally
// deep ones the rule without the paths below.
func (p *Policy) Indexed(path []string, computed bool) bool {
	if p.Off {
		return false
	}
	if len(path) == 1 && (path[0] == "id" || path[0] == "_ts" || path[0] == "_rid") {
		return true
	}
	needsRule := computed || len(path) == 1 && path[0] == "_etag"
	found, depth := !needsRule && len(p.Paths) == 0, -1
	for _, r := range p.Paths {
		if len(r.Path) > len(path) || !r.Below && len(r.Path) < len(path) || needsRule && len(r.Path) == 0 || !slices.Equal(r.Path, path[:len(r.Path)]) {
			continue
		}
		d := 2 * len(r.Path)
		if !r.Below {
			d++
		}
		if d > depth {
			found, depth = r.Include, d
		}
	}
	return found
}

// Ordered reports whether a composite index serves ORDER BY several keys: it has the same
// paths in the same sequence, in the same directions or in all the opposite ones.
func (p *Policy) Ordered(keys []Key) bool {
	if p.Off {
		return false
	}
	return slices.ContainsFunc(p.Composite, func(index []Key) bool {
		return len(index) == len(keys) && (serves(index, keys, false) || serves(index, keys, true))
	})
}

func serves(index, keys []Key, opposite bool) bool {
	for i, k := range keys {
		if !slices.Equal(index[i].Path, k.Path) || (index[i].Descending != k.Descending) != opposite {
			return false
		}
	}
	return true
}

// parsePath reads a path of a policy:
//
//	path = "/" | { "/" name } [ "/?" | "/*" ]
//	name = letters, digits and underscores | any text in double quotes | "[]"
//
// end is "", "?" or "*".
func parsePath(text string) (path []string, end string, err error) {
	if text == "/" {
		return nil, "*", nil
	}
	for at := 0; at < len(text); {
		if text[at] != '/' || at+1 == len(text) {
			return nil, "", notAccepted(text, at)
		}
		rest := text[at+1:]
		if rest == "?" && len(path) > 0 || rest == "*" {
			return path, rest, nil
		}
		size := nameSize(rest)
		if size == 0 {
			return nil, "", notAccepted(text, at+1)
		}
		path = append(path, strings.Trim(rest[:size], `"`))
		at += 1 + size
	}
	if len(path) == 0 {
		return nil, "", notAccepted(text, 0)
	}
	return path, "", nil
}

// nameSize returns the length of the name at the start of text; 0 if there is none.
func nameSize(text string) int {
	if strings.HasPrefix(text, Element) {
		return len(Element)
	}
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		if end := strings.IndexByte(quoted, '"'); end > 0 {
			return end + 2
		}
		return 0
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		return len(text)
	}
	return end
}

func notAccepted(text string, at int) error {
	return fmt.Errorf("the indexing path %q could not be accepted, failed near position '%d': it ends with /? or /*, and names with other characters than letters, digits and _ need quotes", text, at)
}
