package httpapi

import (
	"fmt"

	"feedbox/application/command"
	"feedbox/application/query"
)

// requiredIfMatch is the parameter If-Match of a change. The operator may demand it.
const requiredIfMatch = "If-Match-of-change"

// What a header takes, as regular expressions. White space and empty elements, which
// RFC 9110 allows besides, are left out.
const (
	obsText = "\u0080-\u00ff" // what RFC 9110 §8.8.3 allows in tags besides ASCII
	oneTag  = `(W/)?"[!#-~` + obsText + `]{0,%d}"`
	tagsOf1 = `^(\*|` + oneTag + `(, ?` + oneTag + `)*)$`
	legacy  = `^(\*|` + oneTag + `|[!#-~` + obsText + `]{1,%d})$` // quotes may be missing
	someKey = `^([!#-~]([ !#-~]*[!#-~])?|"([!#-\[\]-~]|\\["\\])+")$`
)

// parameterDocs are the parameters that operations refer to by name. Limits are those
// that are kept: what goes beyond one is refused.
func parameterDocs(demandIfMatch bool, w words) object {
	text := func() object { return object{"type": "string"} }
	tags := object{"type": "string", "minLength": 1, "pattern": fmt.Sprintf(tagsOf1, maxEntityTagLength-2, maxEntityTagLength-2)}
	named := object{}
	for _, one := range []struct {
		key, name, in, description string
		schema                     object
		more                       object
	}{
		{"id", "id", "path", "id of the {noun}", object{"type": "string", "format": "uuid", "pattern": idPattern}, object{"required": true}},
		{"pageSize", "pageSize", "query", "items in a page", object{"type": "integer", "minimum": 1, "maximum": query.MaxPageSize, "default": query.DefaultPageSize}, nil},
		{queryContinuation, queryContinuation, "query", "continuation token of the page before", text(), nil},
		{headerContinuation, headerContinuation, "header", "continuation token of the page before; the query parameter does the same", text(), nil},
		{headerSession, headerSession, "header", "session token of an earlier answer; this request then sees at least what that one saw", object{"type": "string", "maxLength": maxSession}, nil},
		{"If-Match", "If-Match", "header", listOfTags("one"), tags, nil},
		{requiredIfMatch, "If-Match", "header", listOfTags("one"), tags, object{"required": demandIfMatch}},
		{"If-None-Match", "If-None-Match", "header", listOfTags("none"), tags, nil},
		{"ETag", "ETag", "header", "as If-None-Match when reading and as If-Match when changing; send those instead", object{"type": "string", "minLength": 1, "pattern": fmt.Sprintf(legacy, maxEntityTagLength-2, maxEntityTagLength-2)}, object{"deprecated": true}},
		{
			headerIdempotencyKey, headerIdempotencyKey, "header",
			fmt.Sprintf("the client's name for this request, of 1 to %d visible ASCII characters, with or without double quotes around it: a repeat under the same name does nothing and is answered as a replay", command.MaxIdempotencyKey),
			object{"type": "string", "minLength": 1, "pattern": someKey},
			nil,
		},
		{headerClientRequest, headerClientRequest, "header", fmt.Sprintf("id of the request, made by the client; returned if it has at most %d characters, all visible ASCII", maxClientRequestID), text(), nil},
		{"traceparent", "traceparent", "header", "W3C trace context; anything else is ignored", text(), nil},
	} {
		parameter := object{"name": one.name, "in": one.in, "description": w.say(one.description), "schema": one.schema}
		for name, value := range one.more {
			parameter[name] = value
		}
		named[one.key] = parameter
	}
	return named
}

// listOfTags describes a precondition. How many tags it may have is beyond the repetitions
// that regular expressions of every dialect take.
func listOfTags(must string) string {
	return fmt.Sprintf("up to %d entity tags of which the {noun} must have %s, or *", maxEntityTags, must)
}

// idPattern is the one spelling of an id that is taken.
const idPattern = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"

// maxSession is the longest session token that the store takes.
const maxSession = 8192

// pageParameters are those of every listing.
var pageParameters = []string{"pageSize", queryContinuation, headerContinuation, headerSession}
