package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxMetadata bounds a discovery document or key set.
const maxMetadata = 1 << 20

type fetchError struct{ cause error }

func (e *fetchError) Error() string { return e.cause.Error() }
func (e *fetchError) Unwrap() error { return e.cause }

// floorTransport fetches each URL at most once per floor, and answers from memory in
// between. go-oidc fetches the keys again for every signature that it cannot verify;
// without a floor anyone could flood the issuer through us with garbage tokens. A failure
// is cached too, for a sixth of the floor.
type floorTransport struct {
	next    http.RoundTripper
	floor   time.Duration
	flights singleflight.Group

	mu      sync.Mutex // guards fetched
	fetched map[string]fetched
}

type fetched struct {
	at   time.Time // of the last attempt
	body []byte    // of the last good answer, nil before
	err  error     // of the last attempt
}

func newFloorTransport(next http.RoundTripper, floor time.Duration) *floorTransport {
	return &floorTransport{next: next, floor: floor, fetched: map[string]fetched{}}
}

// RoundTrip answers from memory, or fetches. Callers of one URL share a fetch.
func (t *floorTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	result, err, _ := t.flights.Do(url, func() (any, error) {
		t.mu.Lock()
		last, known := t.fetched[url]
		t.mu.Unlock()
		wait := t.floor
		if last.err != nil {
			wait = t.floor / 6
		}
		if known && time.Since(last.at) < wait {
			return last.body, last.err
		}
		body, err := t.fetch(r)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.fetched[url] = fetched{at: time.Now(), body: body, err: err}
		return body, err
	})
	if err != nil {
		return nil, err
	}
	body, ok := result.([]byte)
	if !ok {
		return nil, errors.New("no answer was fetched")
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Body:    io.NopCloser(bytes.NewReader(body)),
		Request: r, ContentLength: int64(len(body)),
	}, nil
}

func (t *floorTransport) fetch(r *http.Request) ([]byte, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, &fetchError{err}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, &fetchError{fmt.Errorf("the identity provider answered %d", response.StatusCode)}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMetadata+1))
	switch {
	case err != nil:
		return nil, &fetchError{err}
	case len(body) > maxMetadata:
		return nil, &fetchError{errors.New("the identity provider's answer is too large")}
	}
	return body, nil
}
