// Package steps records the steps of the protocol of leases. It wraps the ports of a processor, so
// the processor needs no code for it, and a processor that is not recorded pays nothing.
//
// Command spec (tests/spec) compares a recording with the specification Lease.tla. README.md there
// lists which step is which action.
package steps

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"feedbox/changefeed"
)

// Step is one step of a host. Times are in microseconds since the recording began.
type Step struct {
	At   int64  `json:"at"`
	Host string `json:"host,omitempty"`
	// Do is call or end (of a request to the lease store), check (a host found its lease valid, and
	// begins to send), done (a change was delivered), gone (a change was replaced before it was
	// delivered) or commit (a change was committed).
	Do      string              `json:"do"`
	Call    int                 `json:"call,omitempty"`    // of call and end
	Op      string              `json:"op,omitempty"`      // list, read, create, replace, delete
	Match   string              `json:"match,omitempty"`   // the ETag that a write expects
	Lease   string              `json:"lease,omitempty"`   // bounds of its range
	Records []Record            `json:"records,omitempty"` // written, or returned
	ETag    string              `json:"etag,omitempty"`    // of a successful write
	Failed  string              `json:"failed,omitempty"`  // missing, refused or unknown
	Clocks  map[string][2]int64 `json:"clocks,omitempty"`  // monotonic and wall, by host
	Change  int                 `json:"change,omitempty"`
	Key     string              `json:"key,omitempty"`
	EPK     string              `json:"epk,omitempty"`
	LSN     int64               `json:"lsn,omitempty"`
}

// Record is the part of a lease record that the specification knows.
type Record struct {
	Lease    string   `json:"lease"` // bounds of its range; "info"
	ETag     string   `json:"etag,omitempty"`
	Sum      uint64   `json:"sum"` // of what the writer wrote
	State    string   `json:"state,omitempty"`
	Owner    string   `json:"owner,omitempty"`
	Epoch    int64    `json:"epoch,omitempty"`
	LSN      int64    `json:"lsn,omitempty"` // of the position
	Rewind   bool     `json:"rewind,omitempty"`
	Expiry   int64    `json:"expiry,omitempty"` // in milliseconds; of the owner
	Children []string `json:"children,omitempty"`
}

// Log is a recording. It is safe for concurrent use. A nil Log records nothing.
type Log struct {
	mu     sync.Mutex // guards the fields below
	began  time.Time
	calls  int
	clocks map[string]func() (own, wall time.Time)
	zero   map[string][2]time.Time
	steps  []Step
}

// New returns an empty recording, or nil if no folder for recordings is set.
func New() *Log {
	if os.Getenv(Folder) == "" {
		return nil
	}
	return &Log{began: time.Now(), clocks: map[string]func() (own, wall time.Time){}, zero: map[string][2]time.Time{}}
}

// Folder is the environment variable with the folder for recordings.
const Folder = "FEEDBOX_STEPS"

// Write writes the recording to a file of the folder, one step a line.
func (l *Log) Write(name string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]any, len(l.steps))
	for i := range l.steps {
		all[i] = &l.steps[i]
	}
	return write(name, all)
}

// write writes steps to a file of the folder, one a line.
func write(name string, steps []any) error {
	f, err := os.Create(filepath.Join(os.Getenv(Folder), name+".jsonl"))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	encoder := json.NewEncoder(out)
	for _, s := range steps {
		err = errors.Join(err, encoder.Encode(s))
	}
	return errors.Join(err, out.Flush(), f.Close())
}

func (l *Log) add(s Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.At = time.Since(l.began).Microseconds()
	if s.Host != "" {
		s.Clocks = make(map[string][2]int64, len(l.clocks))
		for host, read := range l.clocks {
			own, wall := read()
			s.Clocks[host] = [2]int64{own.Sub(l.zero[host][0]).Microseconds(), wall.Sub(l.zero[host][1]).Microseconds()}
		}
	}
	l.steps = append(l.steps, s)
}

// Check records that a host may send changes of a lease now.
func (l *Log) Check(host string, in changefeed.FeedRange) {
	if l != nil {
		l.add(Step{Do: "check", Host: host, Lease: in.String()})
	}
}

// Done records that a change was delivered.
func (l *Log) Done(host string, change int) {
	if l != nil {
		l.add(Step{Do: "done", Host: host, Change: change})
	}
}

// Gone records that a change need not be delivered, because a later one replaces it.
func (l *Log) Gone(change int) {
	if l != nil {
		l.add(Step{Do: "gone", Change: change})
	}
}

// Commit records the place of a change.
func (l *Log) Commit(change int, key, epk string, lsn int64) {
	if l != nil {
		l.add(Step{Do: "commit", Change: change, Key: key, EPK: epk, LSN: lsn})
	}
}

// Store wraps the lease store of a host. clock reads the host's clocks; nil for an operator, who
// has no lease.
func (l *Log) Store(host string, clock func() (own, wall time.Time), s changefeed.LeaseStore) changefeed.LeaseStore {
	if l == nil {
		return s
	}
	if clock != nil {
		l.mu.Lock()
		own, wall := clock()
		l.clocks[host], l.zero[host] = func() (time.Time, time.Time) {
			own, wall := clock()
			return own, wall.Round(0) // without Go's monotonic reading
		}, [2]time.Time{own, wall.Round(0)}
		l.mu.Unlock()
	}
	return &store{LeaseStore: s, log: l, host: host}
}

// store records the calls of one host.
type store struct {
	changefeed.LeaseStore
	log  *Log
	host string
}

func (s *store) begin(op, id, match string, records ...Record) Step {
	s.log.mu.Lock()
	s.log.calls++
	call := Step{Do: "call", Host: s.host, Call: s.log.calls, Op: op, Lease: leaseOf(id), Match: match, Records: records}
	s.log.mu.Unlock()
	s.log.add(call)
	call.Do, call.Records = "end", nil
	return call
}

func (s *store) end(call Step, err error) {
	switch {
	case err == nil:
		s.log.add(call)
		return
	case errors.Is(err, changefeed.ErrNotFound):
		call.Failed = "missing"
	case errors.Is(err, changefeed.ErrETagMismatch), errors.Is(err, changefeed.ErrExists):
		call.Failed = "refused"
	default:
		call.Failed = "unknown"
	}
	call.ETag, call.Records = "", nil // the caller ignores them
	s.log.add(call)
}

func (s *store) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	call := s.begin("list", "", "")
	records, err := s.LeaseStore.List(ctx, prefix)
	for _, r := range records {
		if leaseOf(r.ID) != "" {
			call.Records = append(call.Records, decode(r))
		}
	}
	s.end(call, err)
	return records, err
}

func (s *store) Read(ctx context.Context, id string) (changefeed.Record, error) {
	call := s.begin("read", id, "")
	r, err := s.LeaseStore.Read(ctx, id)
	if err == nil {
		call.Records = []Record{decode(r)}
	}
	s.end(call, err)
	return r, err
}

func (s *store) Create(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write("create", r, func() (string, error) { return s.LeaseStore.Create(ctx, r) })
}

func (s *store) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write("replace", r, func() (string, error) { return s.LeaseStore.Replace(ctx, r) })
}

func (s *store) write(op string, r changefeed.Record, do func() (string, error)) (string, error) {
	call := s.begin(op, r.ID, r.ETag, decode(r))
	etag, err := do()
	call.ETag = etag
	s.end(call, err)
	return etag, err
}

func (s *store) Delete(ctx context.Context, id, etag string) error {
	call := s.begin("delete", id, etag)
	err := s.LeaseStore.Delete(ctx, id, etag)
	s.end(call, err)
	return err
}

// leaseOf returns the bounds in the id of a lease, "info" for the record of the initialization, and
// "" for records that are no leases.
func leaseOf(id string) string {
	if _, bounds, found := strings.Cut(id, ".."); found {
		return bounds
	}
	if strings.HasSuffix(id, ".info") {
		return Info
	}
	return ""
}

// Info is the lease of the initialization.
const Info = "info"

// decode reads a record. A record that no one can read has no state of the specification.
func decode(r changefeed.Record) Record {
	var doc struct {
		Owner      string            `json:"Owner"`
		Position   string            `json:"ContinuationToken"`
		Properties map[string]string `json:"properties"`
		Timestamp  string            `json:"timestamp"`
	}
	d := Record{Lease: leaseOf(r.ID), ETag: r.ETag}
	if err := json.Unmarshal(r.Body, &doc); err != nil {
		d.State = "unreadable"
		return d
	}
	d.Owner, d.State, d.Rewind = doc.Owner, doc.Properties["state"], doc.Properties["rewind"] != ""
	d.Epoch, _ = strconv.ParseInt(doc.Properties["epoch"], 10, 64)       // absent is 0
	d.LSN, _ = strconv.ParseInt(strings.Trim(doc.Position, `"`), 10, 64) // absent is the beginning
	d.Expiry, _ = strconv.ParseInt(doc.Properties["expiry"], 10, 64)
	var children []changefeed.RangeToken
	if json.Unmarshal([]byte(doc.Properties["children"]), &children) == nil {
		for _, c := range children {
			d.Children = append(d.Children, c.Range.String())
		}
	}
	var members map[string]any
	_ = json.Unmarshal(r.Body, &members)                                                            // it was decoded before
	maps.DeleteFunc(members, func(name string, _ any) bool { return strings.HasPrefix(name, "_") }) // the store's
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(members) // what was decoded can be encoded
	d.Sum = h.Sum64()
	return d
}
