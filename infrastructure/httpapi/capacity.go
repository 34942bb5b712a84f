package httpapi

import (
	"net/http"
	"sync/atomic"
)

// capacity bounds how many requests are handled at the same time. Refusing early
// keeps the answers of those within fast.
//
// A request counts from when its body has been read. Until then it costs a connection
// and what has arrived of the body, which have limits of their own: a caller that sends
// slowly must not hold places that others need.
type capacity struct {
	limit    int64 // not positive: none
	inFlight atomic.Int64
}

// enter takes a place for the request, once.
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

// leave gives the place back, if the request has one.
func (c *capacity) leave(x *requestState) {
	if x.entered {
		x.entered = false
		c.inFlight.Add(-1)
	}
}
