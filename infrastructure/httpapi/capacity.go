package httpapi

import (
	"net/http"
	"sync/atomic"
)

// capacity bounds the number of requests in flight. Refusing the others early keeps the
// admitted ones fast.
//
// A request counts once its body has been read, because a caller that sends slowly must not
// hold a place. Until then it costs a connection and a part of a body, which have their own
// limits.
type capacity struct {
	limit    int64 // unlimited if not positive
	inFlight atomic.Int64
}

// enter takes a place for the request, at most once.
func (c *capacity) enter(x *requestState) error {
	if x.entered || c.limit <= 0 {
		return nil
	}
	if c.inFlight.Add(1) > c.limit {
		c.inFlight.Add(-1)
		return &requestError{status: http.StatusServiceUnavailable, code: "overloaded", detail: "too many requests are being handled; come back soon"}
	}
	x.entered = true
	return nil
}

// leave returns the place of the request, if it has one.
func (c *capacity) leave(x *requestState) {
	if x.entered {
		x.entered = false
		c.inFlight.Add(-1)
	}
}
