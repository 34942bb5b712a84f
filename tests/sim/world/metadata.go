package world

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
)

// metadata serves the reads that azcosmos caches: of the account, of a container and of its ranges.
// The client holds a mutex during these requests. Other requests wait for it, and virtual time
// stops while a goroutine waits for a mutex. So these requests bypass all faults, and are answered
// with the last answer while the store is down.
type metadata struct {
	transport *http.Transport

	mu   sync.Mutex // guards last
	last map[string]*answer
}

// answer is a stored answer.
type answer struct {
	response http.Response
	body     []byte
}

func newMetadata(n *network) *metadata {
	clean := newNIC(n)
	return &metadata{last: map[string]*answer{}, transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return clean.dial(ctx, cosmosAddr)
	}}}
}

var metadataPath = regexp.MustCompile(`^/?$|^/dbs/[^/]+/colls/[^/]+(/pkranges)?/?$`)

func isMetadata(method, path string) bool {
	return method == http.MethodGet && metadataPath.MatchString(path)
}

// roundTripper is the transport of a process. Metadata requests use the one without faults.
type roundTripper struct {
	*http.Transport
	nic      *nic
	metadata *metadata
}

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isMetadata(r.Method, r.URL.Path) {
		return t.Transport.RoundTrip(r)
	}
	if !t.nic.alive() {
		return nil, errDown
	}
	return t.metadata.roundTrip(r)
}

func (m *metadata) roundTrip(r *http.Request) (*http.Response, error) {
	key := r.URL.String() + " " + r.Header.Get("If-None-Match")
	response, err := m.transport.RoundTrip(r)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && response.StatusCode < http.StatusInternalServerError {
		m.last[key] = &answer{*response, body}
	}
	kept := m.last[key]
	if kept == nil {
		return nil, errDown
	}
	again := kept.response
	again.Request, again.Header, again.Body = r, kept.response.Header.Clone(), io.NopCloser(bytes.NewReader(kept.body))
	return &again, nil
}
