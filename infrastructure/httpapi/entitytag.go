package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The bounds of a precondition header.
const (
	maxEntityTags      = 32
	maxEntityTagLength = 50 // of the tag with its quotes, without W/
)

// tagList is the value of If-Match or If-None-Match (RFC 9110 §13.1).
type tagList struct {
	any  bool     // "*"
	tags []string // quoted; weak ones with their W/
}

// present reports whether the request had the header.
func (l tagList) present() bool { return l.any || len(l.tags) > 0 }

// list returns the tags in the form that commands use.
func (l tagList) list() []string {
	if l.any {
		return []string{"*"}
	}
	return l.tags
}

// matchesStrong is the strong comparison of If-Match: weak tags never match.
func (l tagList) matchesStrong(etag string) bool {
	return l.any || slices.Contains(l.tags, etag)
}

// matchesWeak is the weak comparison of If-None-Match: W/ is ignored.
func (l tagList) matchesWeak(etag string) bool {
	return l.any || slices.ContainsFunc(l.tags, func(tag string) bool {
		return strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/")
	})
}

// tagsOf reads a precondition header by its canonical name. Repeated headers form one list.
func tagsOf(h http.Header, name string) (tagList, error) {
	lines := h[name]
	if len(lines) == 0 {
		return tagList{}, nil
	}
	list, problem := parseTags(strings.Join(lines, ", "))
	if problem != "" {
		return tagList{}, badRequest("invalid_precondition", name+" "+problem)
	}
	return list, nil
}

// legacyTag reads the request header ETag, in which clients of the original sample send
// their precondition. Quotes may be missing.
func legacyTag(h http.Header) (tagList, error) {
	value, err := single(h, headerETag)
	if _, given := h[headerETag]; err != nil || !given {
		return tagList{}, err
	}
	if value != "" && value != "*" && !strings.HasSuffix(value, `"`) {
		value = `"` + value + `"`
	}
	list, problem := parseTags(value)
	if len(list.tags) > 1 {
		problem = "must be one entity tag"
	}
	if problem != "" {
		return tagList{}, badRequest("invalid_precondition", "ETag "+problem)
	}
	return list, nil
}

// parseTags reads "*" or a list of entity tags (RFC 9110 §8.8.3). Empty list elements are
// allowed, as §5.6.1 requires.
func parseTags(value string) (tagList, string) {
	rest := strings.Trim(value, " \t")
	if rest == "*" {
		return tagList{any: true}, ""
	}
	var list tagList
	for {
		rest = strings.TrimLeft(rest, " \t,")
		if rest == "" {
			break
		}
		tag, after, ok := cutTag(rest)
		if !ok {
			return tagList{}, `must be * or a list of entity tags, each in double quotes, such as "abc"`
		}
		if len(strings.TrimPrefix(tag, "W/")) > maxEntityTagLength {
			return tagList{}, fmt.Sprintf("has an entity tag of more than %d characters", maxEntityTagLength)
		}
		if list.tags = append(list.tags, tag); len(list.tags) > maxEntityTags {
			return tagList{}, fmt.Sprintf("has more than %d entity tags", maxEntityTags)
		}
		rest = strings.TrimLeft(after, " \t")
		if rest != "" && rest[0] != ',' {
			return tagList{}, "must separate entity tags by commas"
		}
	}
	if len(list.tags) == 0 {
		return tagList{}, "must not be empty"
	}
	return list, ""
}

// cutTag splits one entity tag off the front of text.
func cutTag(text string) (tag, rest string, ok bool) {
	start := 0
	if strings.HasPrefix(text, "W/") {
		start = 2
	}
	if start >= len(text) || text[start] != '"' {
		return "", "", false
	}
	for i := start + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return text[:i+1], text[i+1:], true
		case c < 0x21 || c == 0x7f:
			return "", "", false
		}
	}
	return "", "", false
}
