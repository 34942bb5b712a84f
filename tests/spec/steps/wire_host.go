package steps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
)

// wireHost is the transport of one process.
type wireHost struct {
	*Wire
	name   string
	leases map[string]*wireLease // guarded by mu of Wire
}

// wireLease is what a process has done with a lease.
type wireLease struct {
	busy  sync.Mutex // held during a request
	call  *wireStep  // the last one
	end   *wireStep  // of call
	epoch int64      // of its ownership; 0 if it has none
	wrote string     // timestamp of its last write
}

// RoundTrip forwards a request. The store answers requests to the leases even if their process was
// killed meanwhile. A process makes one at a time for each lease: the next one waits here, as on a
// slow network, because a host of the specification has one at a time, too.
func (h *wireHost) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	prefix, s, timestamp := h.describe(r, body)
	if prefix == "" {
		return h.transport.RoundTrip(r)
	}
	lease := h.lease(prefix + " " + s.Lease)
	if s.Op != "list" {
		lease.busy.Lock()
		defer lease.busy.Unlock()
	}
	call := h.begin(prefix, s, timestamp, lease)
	sent := r.Clone(context.WithoutCancel(r.Context()))
	sent.Header.Del("Accept-Encoding") // the answer is decoded here
	reply, err := h.transport.RoundTrip(sent)
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(reply.Body)
		_ = reply.Body.Close() // it was read
		reply.Body = io.NopCloser(bytes.NewReader(answer))
	}
	end := call.Step
	end.Do, end.Records, end.Failed = "end", nil, "unknown"
	if err == nil && r.Context().Err() == nil { // otherwise the process has no answer
		end.outcome(reply, answer)
	}
	h.end(prefix, end, call, lease)
	return reply, err
}

// describe returns the step of a request to a lease, the prefix of its id and the timestamp in the
// record. prefix is empty for other requests.
func (h *wireHost) describe(r *http.Request, body []byte) (prefix string, s Step, timestamp string) {
	rest, found := strings.CutPrefix(r.URL.Path, h.documents)
	if !found || r.Method == http.MethodGet && rest == "" {
		return "", s, ""
	}
	var doc struct {
		ID         string `json:"id"`
		Timestamp  string `json:"timestamp"`
		Parameters []struct {
			Value string `json:"value"`
		} `json:"parameters"`
	}
	_ = json.Unmarshal(body, &doc) // requests without a body have no members
	id := cmp.Or(doc.ID, path.Base(rest))
	s = Step{Do: "call", Host: h.name, Match: r.Header.Get("If-Match")}
	switch query := strings.HasPrefix(r.Header.Get("Content-Type"), "application/query+json"); {
	case query && len(doc.Parameters) > 0:
		s.Op = "list"
		return strings.TrimSuffix(doc.Parameters[0].Value, "."), s, ""
	case r.Method == http.MethodGet:
		s.Op = "read"
	case r.Method == http.MethodPost && !query:
		s.Op = "create"
	case r.Method == http.MethodPut:
		s.Op = "replace"
	case r.Method == http.MethodDelete:
		s.Op = "delete"
	}
	if s.Lease = leaseOf(id); s.Op == "" || s.Lease == "" {
		return "", s, ""
	}
	if s.Op == "create" || s.Op == "replace" {
		s.Records = []Record{decode(changefeed.Record{ID: id, ETag: s.Match, Body: body})}
	}
	prefix, _, _ = strings.Cut(id, "..")
	return strings.TrimSuffix(prefix, ".info"), s, doc.Timestamp
}

func (h *wireHost) lease(name string) *wireLease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases[name] == nil {
		h.leases[name] = &wireLease{}
	}
	return h.leases[name]
}

// now returns the time of both clocks since the recording began.
func (w *Wire) now() (own, wall int64) {
	now := time.Now()
	return now.Sub(w.began).Microseconds(), now.Round(0).Sub(w.began.Round(0)).Microseconds()
}

func (h *wireHost) begin(prefix string, s Step, timestamp string, l *wireLease) *wireStep {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	s.Call = h.calls
	own, wall := h.now()
	s.At = own
	written, err := time.Parse(time.RFC3339Nano, timestamp)
	if s.Op == "replace" && l.epoch > 0 && s.Records[0].Epoch == l.epoch && err == nil {
		s.At = min(own, own-wall+written.Sub(h.began.Round(0)).Microseconds())
		if last := l.end; last.At > s.At {
			if last.Failed == "unknown" && timestamp != l.wrote && s.At > l.call.At {
				last.At, last.wall = s.At, s.At-own+wall // the process had stopped waiting for it
			}
			s.At = last.At // a repeated request
		}
	}
	l.wrote = timestamp
	call := &wireStep{s, s.At - own + wall}
	h.steps[prefix] = append(h.steps[prefix], call)
	return call
}

func (h *wireHost) end(prefix string, s Step, call *wireStep, l *wireLease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, wall := h.now()
	s.At = own
	end := &wireStep{s, wall}
	h.steps[prefix] = append(h.steps[prefix], end)
	if s.Op == "list" {
		return
	}
	l.call, l.end = call, end
	if len(call.Records) == 0 || s.Failed != "" {
		return
	}
	switch wrote := &call.Records[0]; {
	case wrote.State != "":
		l.epoch = 0 // the writes that complete a split have the timestamps of its beginning
	case wrote.Owner != "":
		l.epoch = wrote.Epoch
	}
}

// outcome reads an answer.
func (s *Step) outcome(reply *http.Response, answer []byte) {
	record := func(raw []byte) {
		var doc struct {
			ID   string `json:"id"`
			ETag string `json:"_etag"`
		}
		if json.Unmarshal(raw, &doc) == nil && leaseOf(doc.ID) != "" {
			s.Records = append(s.Records, decode(changefeed.Record{ID: doc.ID, ETag: doc.ETag, Body: raw}))
		}
	}
	switch status := reply.StatusCode; {
	case status == http.StatusNotFound:
		s.Failed = "missing"
	case status == http.StatusConflict, status == http.StatusPreconditionFailed:
		s.Failed = "refused"
	case status >= http.StatusBadRequest:
	case s.Op == "list":
		var page struct{ Documents []json.RawMessage }
		if json.Unmarshal(answer, &page) == nil {
			s.Failed = ""
			for _, raw := range page.Documents {
				record(raw)
			}
		}
	case s.Op == "read":
		s.Failed = ""
		record(answer)
	default:
		s.Failed, s.ETag = "", reply.Header.Get("ETag")
	}
}
