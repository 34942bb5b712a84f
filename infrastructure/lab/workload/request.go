package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
)

// reply has the parts of an API reply that the load needs.
type reply struct {
	status     int
	id         string // of a created contact
	retryAfter string
	text       string // start of the body of an error
}

// rejected reports whether the service did not start the request. A 503 is not enough,
// because the service also returns it if it does not know the outcome.
func (r reply) rejected() bool { return r.status == http.StatusTooManyRequests && r.retryAfter != "" }

// overtaken reports whether another change of the contact was first.
func (r reply) overtaken() bool {
	return r.status == http.StatusConflict || r.status == http.StatusPreconditionFailed
}

func (l *Load) post(ctx context.Context, route string, body any) (reply, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Base+route, bytes.NewReader(data))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.Client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body) // otherwise the connection is not reused
	}
	return reply{resp.StatusCode, path.Base(resp.Header.Get("Location")), resp.Header.Get("Retry-After"), string(text)}, err
}
