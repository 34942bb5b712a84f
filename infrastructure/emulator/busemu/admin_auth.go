package busemu

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// authenticate checks the token of the Authorization header. The claim
// itself is checked with the operation, because the service refuses each in its
// own words.
func (q *adminRequest) authenticate() bool {
	header := q.r.Header.Get("Authorization")
	if header == "" {
		q.fail(http.StatusUnauthorized, "MissingToken: The authorization header was not found.")
		return false
	}
	read := q.srv.keys.verify
	if bearer, ok := strings.CutPrefix(header, "Bearer "); ok {
		header, read = bearer, readJWT
	}
	token, err := read(header, time.Now())
	if err != nil {
		q.fail(http.StatusUnauthorized, err.Error())
		return false
	}
	if token.covers(audiencePath(q.r.URL.Path)) {
		q.rights = token.rights
	}
	return true
}

// may checks the Manage claim; text is the refusal.
func (q *adminRequest) may(text string) bool {
	if q.rights&RightManage != 0 {
		return true
	}
	q.fail(http.StatusUnauthorized, text)
	return false
}

// mayRead is may for reading queues and topics.
func (q *adminRequest) mayRead() bool {
	return q.may("Manage,EntityRead claims required for this operation.")
}

// maySub is may for subscriptions and rules.
func (q *adminRequest) maySub(operation string) bool {
	return q.may(fmt.Sprintf("401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint 'sb://%s%s'.",
		operation, q.srv.host(), q.r.URL.Path))
}
