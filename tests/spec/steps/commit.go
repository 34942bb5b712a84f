package steps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
)

// CommitStep is one step of a client that changes one aggregate.
type CommitStep struct {
	Client string `json:"client"`
	// Do is get (a document was read), send, arrive (at the store), answer or result (what the caller
	// of the unit of work received).
	Do    string `json:"do"`
	Call  int    `json:"call,omitempty"` // of send, arrive and answer
	ID    string `json:"id,omitempty"`   // of the first event of the batch, or of the document
	Match string `json:"match,omitempty"`
	ETag  string `json:"etag,omitempty"`
	// Kind is stored, taken (its event exists), refused, throttled or lost; of a get found, missing or
	// lost; of a result stored, refused or unknown.
	Kind string `json:"kind"`
}

// Commits is a recording of clients. It is safe for concurrent use. A nil Commits records nothing.
type Commits struct {
	// lock orders the effects. It is a channel because the store may need time, which passes in a
	// bubble of testing/synctest only while no goroutine waits for a mutex.
	lock  chan struct{}
	calls int
	steps []any
}

// NewCommits returns an empty recording, or nil if no folder for recordings is set.
func NewCommits() *Commits {
	if os.Getenv(Folder) == "" {
		return nil
	}
	return &Commits{lock: make(chan struct{}, 1)}
}

// Write writes the recording to a file of the folder, one step a line.
func (l *Commits) Write(name string) error {
	if l == nil {
		return nil
	}
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	return write(name, l.steps)
}

// Do makes a request and records it as one step, unless its Do is empty.
func (l *Commits) Do(request func() CommitStep) {
	if l == nil {
		request()
		return
	}
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	if s := request(); s.Do != "" {
		l.steps = append(l.steps, s)
	}
}

// Transporter sends requests.
type Transporter interface {
	Do(r *http.Request) (*http.Response, error)
}

// Fate is the fate of one request.
type Fate struct {
	Throttle bool   // it is refused for the moment
	Lose     error  // the client receives this instead of an answer
	Arrive   func() // waits until the request arrives, perhaps after the client has its error; nil if it never does
	Late     bool   // Arrive is called after the client has received Lose, on its own goroutine by Go
}

// CommitFaults decide the fate of requests.
type CommitFaults interface {
	Fate(r *http.Request, batch bool) Fate
	Go(late func())
}

// Transport wraps the transport of a client.
func (l *Commits) Transport(client string, next Transporter, faults CommitFaults) Transporter {
	return &commitTransport{l, client, next, faults}
}

type commitTransport struct {
	log    *Commits
	client string
	next   Transporter
	faults CommitFaults
}

// Do implements policy.Transporter.
func (t *commitTransport) Do(r *http.Request) (*http.Response, error) {
	switch {
	case r.Header.Get("x-ms-cosmos-is-batch-request") != "":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s, read := describe(body)
		fate := t.faults.Fate(r, !read)
		if !read {
			return t.batch(r, body, s, fate)
		}
		return t.get(r, s.ID, fate)
	case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/docs/"):
		return t.get(r, path.Base(r.URL.Path), t.faults.Fate(r, false))
	}
	return t.next.Do(r)
}

// get reads a document, perhaps by a batch, which the primary answers.
func (t *commitTransport) get(r *http.Request, id string, fate Fate) (reply *http.Response, err error) {
	t.log.Do(func() CommitStep {
		s := CommitStep{Client: t.client, Do: "get", ID: id, Kind: "lost"}
		if err = fate.Lose; err != nil {
			return s
		}
		if reply, err = t.next.Do(r); err != nil { //nolint:bodyclose // the caller reads it
			return s
		}
		status, etag := reply.StatusCode, reply.Header.Get("etag")
		if r.Method == http.MethodPost {
			status, etag = firstResult(reply)
		}
		switch {
		case status == http.StatusNotFound:
			s.Kind = "missing"
		case status < http.StatusBadRequest:
			s.Kind, s.ETag = "found", etag
		}
		return s
	})
	return reply, err
}

// batch sends a transactional batch.
func (t *commitTransport) batch(r *http.Request, body []byte, s CommitStep, fate Fate) (*http.Response, error) {
	s.Client, s.Do = t.client, "send"
	t.log.Do(func() CommitStep {
		if t.log != nil {
			t.log.calls++
			s.Call = t.log.calls
		}
		return s
	})
	answer := s
	answer.Do, answer.Kind = "answer", "lost"
	reply, err := (*http.Response)(nil), fate.Lose
	switch {
	case fate.Throttle:
		answer.Kind = "throttled"
		reply = &http.Response{
			Status: "429", StatusCode: http.StatusTooManyRequests, Header: http.Header{"X-Ms-Retry-After-Ms": {"5"}}, Body: http.NoBody, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		}
	case fate.Arrive != nil && fate.Late:
		t.faults.Go(func() {
			if late, _, err := t.arrive(context.WithoutCancel(r.Context()), r, body, answer, fate); err == nil {
				_ = late.Body.Close()
			}
		})
	case fate.Arrive != nil && err == nil:
		reply, answer.Kind, err = t.arrive(r.Context(), r, body, answer, fate)
	case fate.Arrive != nil:
		if lost, _, failed := t.arrive(r.Context(), r, body, answer, fate); failed == nil {
			_ = lost.Body.Close()
		}
	}
	t.log.Do(func() CommitStep { return answer })
	return reply, err
}

// arrive hands a batch to the store.
func (t *commitTransport) arrive(ctx context.Context, r *http.Request, body []byte, s CommitStep, fate Fate) (reply *http.Response, kind string, err error) {
	fate.Arrive()
	s.Do = "arrive"
	t.log.Do(func() CommitStep {
		sent := r.Clone(ctx)
		sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if reply, err = t.next.Do(sent); err != nil { //nolint:bodyclose // the caller reads it
			kind = "lost"
			return CommitStep{}
		}
		s.Kind, s.ETag = outcome(reply)
		kind = s.Kind
		return s
	})
	return reply, kind, err
}

// describe returns the first id of a batch, the ETag that it expects, and whether it only reads.
func describe(body []byte) (s CommitStep, read bool) {
	var ops []struct {
		Type    string `json:"operationType"`
		ID      string `json:"id"`
		IfMatch string `json:"ifMatch"`
		Body    struct {
			ID string `json:"id"`
		} `json:"resourceBody"`
	}
	_ = json.Unmarshal(body, &ops) // a body of another form has no id
	for i := range ops {
		s.ID = cmp.Or(s.ID, ops[i].ID, ops[i].Body.ID)
		s.Match = cmp.Or(s.Match, ops[i].IfMatch)
	}
	return s, len(ops) > 0 && ops[0].Type == "Read"
}

type batchResult struct {
	Status int    `json:"statusCode"`
	ETag   string `json:"eTag"`
}

// resultsOf reads the reply to a batch, and leaves it as it was.
func resultsOf(reply *http.Response) (results []batchResult) {
	body, err := io.ReadAll(reply.Body)
	reply.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || json.Unmarshal(body, &results) != nil {
		return nil
	}
	return results
}

func firstResult(reply *http.Response) (status int, etag string) {
	if results := resultsOf(reply); len(results) > 0 {
		return results[0].Status, results[0].ETag
	}
	return http.StatusBadGateway, ""
}

// outcome returns the result of a batch.
func outcome(reply *http.Response) (kind, etag string) {
	kind = "unreadable"
	for i, r := range resultsOf(reply) {
		switch {
		case r.Status == http.StatusFailedDependency:
		case r.Status == http.StatusConflict && i == 0:
			return "taken", ""
		case r.Status >= http.StatusBadRequest:
			return "refused", ""
		default:
			kind, etag = "stored", r.ETag
		}
	}
	return kind, etag
}
