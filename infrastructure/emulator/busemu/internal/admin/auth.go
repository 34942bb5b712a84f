package admin

import (
	"fmt"
	"net/http"
)

// authenticate checks the token of the Authorization header. The Manage claim is checked
// with the operation, because the service refuses each operation with a text of its own.
func (q *request) authenticate() bool {
	header := q.r.Header.Get("Authorization")
	if header == "" {
		q.fail(http.StatusUnauthorized, "MissingToken: The authorization header was not found.")
		return false
	}
	manage, err := q.Authorize(header, q.r.URL.Path)
	if err != nil {
		q.fail(http.StatusUnauthorized, err.Error())
		return false
	}
	q.manage = manage
	return true
}

// may checks the Manage claim; text is the refusal.
func (q *request) may(text string) bool {
	if q.manage {
		return true
	}
	q.fail(http.StatusUnauthorized, text)
	return false
}

// mayRead is may for reading queues and topics.
func (q *request) mayRead() bool {
	return q.may("Manage,EntityRead claims required for this operation.")
}

// maySub is may for subscriptions and rules.
func (q *request) maySub(operation string) bool {
	return q.may(fmt.Sprintf("401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint 'sb://%s%s'.",
		operation, q.Host, q.r.URL.Path))
}
