package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
)

// reply is what matters of an answer of the API.
type reply struct {
	status     int
	id         string // of a created contact
	retryAfter string
	text       string // the beginning of an error's body
}

// turnedAway tells whether the service did not begin with the request. A 503 may
// also end one whose outcome the service does not know.
func (r reply) turnedAway() bool { return r.status == http.StatusTooManyRequests && r.retryAfter != "" }

// overtaken tells whether another change of the contact came first.
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
		_, err = io.Copy(io.Discard, resp.Body) // to the end, so that the connection is used again
	}
	return reply{resp.StatusCode, path.Base(resp.Header.Get("Location")), resp.Header.Get("Retry-After"), string(text)}, err
}
