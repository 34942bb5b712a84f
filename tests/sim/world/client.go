package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Reply is an answer of the API. Status 0 means no answer.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Definite reports whether the client knows the outcome of its request.
func (r Reply) Definite() bool {
	return r.Status != 0 && r.Status < 500 && r.Status != http.StatusRequestTimeout
}

// OK reports whether the request was executed.
func (r Reply) OK() bool { return r.Status >= 200 && r.Status < 300 }

// Client is an HTTP client that no fault affects. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	http      *http.Client
}

// NewClient returns a client of the APIs of the world, which are http://api-0,
// http://api-1 and so on. Close it before the test ends.
func (w *World) NewClient() *Client {
	n := newNIC(w.network)
	t := &http.Transport{MaxIdleConnsPerHost: 8, DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		return n.dial(ctx, addr)
	}}
	return &Client{transport: t, http: &http.Client{Transport: t, Timeout: 30 * time.Second}}
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends one request to an API, for example "api-0". body may be nil. Headers are
// name, value, name, value.
func (c *Client) Do(ctx context.Context, api, method, path string, body any, headers ...string) Reply {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			panic(fmt.Sprintf("world: request body: %v", err))
		}
		content = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+api+path, content)
	if err != nil {
		panic(fmt.Sprintf("world: request: %v", err))
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return Reply{}
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return Reply{} // the answer was cut off
	}
	return Reply{Status: resp.StatusCode, Header: resp.Header, Body: data}
}
