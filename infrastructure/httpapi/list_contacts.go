package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"feedbox/application/mediator"
	"feedbox/application/query"
)

// listContacts answers 200 with one page.
func (s *Server) listContacts(w http.ResponseWriter, r *http.Request) error {
	parameters, err := queryOf(r, "pageSize", queryContinuation)
	if err != nil {
		return err
	}
	size, err := pageSize(parameters)
	if err != nil {
		return err
	}
	token, err := continuationOf(r, parameters)
	if err != nil {
		return err
	}
	session, err := single(r.Header, headerSession)
	if err != nil {
		return err
	}
	in := query.ReadContacts{PageSize: size, SessionToken: session}
	if token != "" {
		if in.Continuation, err = s.tokens.open(token); err != nil {
			return err
		}
	}
	page, err := mediator.Send(r.Context(), s.mediator, in)
	if err != nil {
		return err
	}
	view := pageView{Items: make([]itemView, len(page.Items)), HasMore: page.Continuation != ""}
	for i, item := range page.Items {
		view.Items[i] = itemView(item)
	}
	if view.HasMore {
		next := s.tokens.seal(page.Continuation)
		w.Header().Set(headerContinuation, next)
		view.NextLink = s.publicURL(r) + pathContacts + "?" + url.Values{
			"pageSize": {strconv.Itoa(size)}, queryContinuation: {next},
		}.Encode()
	}
	setState(w.Header(), "", page.SessionToken)
	writeJSON(w, http.StatusOK, mediaJSON, view)
	return nil
}

// queryOf reads the query string. Unknown and repeated parameters are
// refused: a misspelt one would be ignored otherwise.
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

// continuationOf takes the token from the header or from the query.
func continuationOf(r *http.Request, parameters map[string]string) (string, error) {
	header, err := single(r.Header, headerContinuation)
	if err != nil {
		return "", err
	}
	inQuery := parameters[queryContinuation]
	if header != "" && inQuery != "" && header != inQuery {
		return "", badRequest("invalid_continuation", "the header "+headerContinuation+" and the query parameter "+queryContinuation+" differ")
	}
	if header != "" {
		return header, nil
	}
	return inQuery, nil
}

// publicURL is the scheme and host by which this client reaches the API.
func (s *Server) publicURL(r *http.Request) string {
	if s.options.PublicURL != "" {
		return s.options.PublicURL
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
