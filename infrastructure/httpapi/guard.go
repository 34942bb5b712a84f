package httpapi

import (
	"net/http"
	"sync/atomic"
)

// guard bounds how many requests are handled at the same time. Refusing early
// keeps the answers of those within fast.
func (s *Server) guard(next http.Handler) http.Handler {
	var inFlight atomic.Int64
	limit := int64(s.options.MaxInFlight)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer inFlight.Add(-1)
		if n := inFlight.Add(1); limit > 0 && n > limit {
			fail(w, r, &requestError{status: http.StatusServiceUnavailable, code: "overloaded", detail: "too many requests are being handled; come back soon"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
