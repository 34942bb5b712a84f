package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"feedbox/application/query"
)

// listingOf reads page size, continuation and session token of a request for a page. A
// token is valid only for the listing that issued it, which the path identifies.
func (c *collection) listingOf(r *http.Request) (Listing, error) {
	parameters, err := queryOf(r, "pageSize", queryContinuation)
	if err != nil {
		return Listing{}, err
	}
	p := Listing{}
	if p.PageSize, err = pageSize(parameters); err != nil {
		return p, err
	}
	if p.SessionToken, err = single(r.Header, headerSession); err != nil {
		return p, err
	}
	token, err := continuationOf(r, parameters)
	if err != nil || token == "" {
		return p, err
	}
	p.Continuation, err = c.tokens.open(token, r.URL.Path)
	return p, err
}

// setNext sets the continuation header and returns the link to the next page. Without a
// public URL the link is relative, because the client or a proxy controls the headers Host
// and X-Forwarded-Proto.
func (c *collection) setNext(h http.Header, r *http.Request, listing Listing, continuation string) string {
	token := c.tokens.seal(continuation, r.URL.Path)
	h.Set(headerContinuation, token)
	values := url.Values{"pageSize": {strconv.Itoa(listing.PageSize)}, queryContinuation: {token}}
	return c.options.PublicURL + r.URL.Path + "?" + values.Encode()
}

// queryOf reads the query string. Unknown and repeated parameters are refused, because
// otherwise a misspelt one would be ignored silently.
func queryOf(r *http.Request, known ...string) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("invalid_query", "the query string is malformed")
	}
	out := make(map[string]string, len(values))
	for _, name := range known {
		if list, ok := values[name]; ok {
			if len(list) > 1 {
				return nil, badRequest("invalid_query", "the query parameter "+name+" is given more than once")
			}
			out[name] = list[0]
			delete(values, name)
		}
	}
	if len(values) > 0 {
		return nil, badRequest("invalid_query", fmt.Sprintf("the query has parameters other than %q", known))
	}
	return out, nil
}

func pageSize(parameters map[string]string) (int, error) {
	text, given := parameters["pageSize"]
	if !given {
		return query.DefaultPageSize, nil
	}
	size, err := strconv.Atoi(text)
	if err != nil || size < 1 || size > query.MaxPageSize {
		return 0, badRequest("invalid_query", fmt.Sprintf("pageSize must be a whole number from 1 to %d", query.MaxPageSize))
	}
	return size, nil
}

// continuationOf returns the token of the header or of the query.
func continuationOf(r *http.Request, parameters map[string]string) (string, error) {
	header, err := single(r.Header, headerContinuation)
	if err != nil {
		return "", err
	}
	inQuery := parameters[queryContinuation]
	if header != "" && inQuery != "" && header != inQuery {
		return "", badRequest("invalid_continuation", "the header "+headerContinuation+" and the query parameter "+queryContinuation+" differ")
	}
	return cmp.Or(header, inQuery), nil
}
