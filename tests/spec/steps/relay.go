package steps

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/relay/relayport"
)

// RelayStep is one step of relays over a store and a broker in memory. Each is recorded at the
// moment of its effect, under one lock, so their order is the order of the run.
type RelayStep struct {
	Host string `json:"host,omitempty"`
	// Do is commit, cut (the container lost its last changes), lease (a write to the lease store),
	// read (a page), listed (the closed gates), send, arrive (at the broker), answer, park, parked
	// (its answer), first, remove, update, open or intent (of a gate).
	Do    string   `json:"do"`
	Call  int      `json:"call,omitempty"` // of send, arrive and answer
	Key   string   `json:"key,omitempty"`
	IDs   []string `json:"ids,omitempty"`
	EPK   string   `json:"epk,omitempty"`
	LSN   int64    `json:"lsn,omitempty"`
	Kind  string   `json:"kind,omitempty"`  // of a cut, a closing ("auto", "refused" or "" for followers), or a verb
	Keys  int      `json:"keys,omitempty"`  // of a send
	N     int      `json:"n,omitempty"`     // messages that arrived
	Lease string   `json:"lease,omitempty"` // bounds of its range
	From  int64    `json:"from,omitempty"`
	To    int64    `json:"to,omitempty"`
	// Stored are the ids that a store of parked events added; Open means that the gate is open.
	Stored []string `json:"stored,omitempty"`
	Open   bool     `json:"open,omitempty"`
	Auto   bool     `json:"auto,omitempty"`
	Placed bool     `json:"placed,omitempty"` // the first parked event has a place in the feed

	Results []RelayResult `json:"results,omitempty"`
	Record  *RelayRecord  `json:"record,omitempty"` // nil after a deletion
	Op      string        `json:"op,omitempty"`
}

// RelayResult is the outcome of the messages of one key.
type RelayResult struct {
	Key  string `json:"key"`
	N    int    `json:"n"`              // accepted
	Kind string `json:"kind,omitempty"` // "", failed, refused or ended (with the context)
}

// RelayRecord is the part of a lease record that Relay.tla has.
type RelayRecord struct {
	Record
	History string           `json:"history,omitempty"`
	Lost    bool             `json:"lost,omitempty"`
	Ahead   changefeed.Ahead `json:"ahead"`
}

// Relays is a recording of relays. It is safe for concurrent use. A nil Relays records nothing.
type Relays struct {
	mu    sync.Mutex // guards the fields below, and orders the effects
	calls int
	steps []any
}

// NewRelays returns an empty recording, or nil if no folder for recordings is set.
func NewRelays() *Relays {
	if os.Getenv(Folder) == "" {
		return nil
	}
	return &Relays{}
}

// Write writes the recording to a file of the folder, one step a line.
func (l *Relays) Write(name string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return write(name, l.steps)
}

// Do makes a change and records it as one step.
func (l *Relays) Do(change func() RelayStep) {
	if l == nil {
		change()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, change())
}

// RelayFaults delays calls of a host and makes them fail.
type RelayFaults interface {
	// Before is called before the effect; an error prevents it.
	Before(ctx context.Context, op string) error
	// After is called after the effect; an error replaces the answer.
	After(ctx context.Context, op string) error
}

// Accept hands messages of one key to the broker. It returns how many arrived and how many the
// broker reports as accepted.
type Accept func(key string, ids []string) (arrived, accepted int, err error)

// Ports are the ports of one host.
type Ports struct {
	log    *Relays
	host   string
	faults RelayFaults
}

// Host returns the recorded ports of a host.
func (l *Relays) Host(name string, faults RelayFaults) *Ports { return &Ports{l, name, faults} }

// recordedFeed records the pages that a host reads.
type recordedFeed struct {
	changefeed.Feed
	changefeed.Placer
	*Ports
}

// Feed wraps a feed that knows the places of keys.
func (p *Ports) Feed(f changefeed.Feed, place changefeed.Placer) changefeed.Feed {
	return recordedFeed{f, place, p}
}

func lsnOf(continuation string) int64 {
	n, _ := strconv.ParseInt(strings.Trim(continuation, `"`), 10, 64) // absent is the beginning
	return n
}

// Read implements changefeed.Feed.
func (f recordedFeed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if err := f.faults.Before(ctx, "read"); err != nil {
		return nil, err
	}
	var page *changefeed.Page
	var err error
	f.log.Do(func() RelayStep {
		s := RelayStep{Host: f.host, Do: "read", Lease: req.Range.String(), From: lsnOf(req.Continuation), Open: true}
		if page, err = f.Feed.Read(ctx, req); err == nil {
			s.To, s.LSN, s.Open = lsnOf(page.Continuation), page.EndLSN, false
		}
		return s
	})
	return page, err
}

// Leases wraps a lease store.
func (p *Ports) Leases(s changefeed.LeaseStore) changefeed.LeaseStore { return recordedLeases{s, p} }

type recordedLeases struct {
	changefeed.LeaseStore
	*Ports
}

func (s recordedLeases) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	if err := s.faults.Before(ctx, "list"); err != nil {
		return nil, err
	}
	return s.LeaseStore.List(ctx, prefix)
}

func (s recordedLeases) write(ctx context.Context, op string, r changefeed.Record, do func() (string, error)) (etag string, err error) {
	if err := s.faults.Before(ctx, op); err != nil {
		return "", err
	}
	s.log.Do(func() RelayStep {
		step := RelayStep{Host: s.host, Do: "lease", Op: op, Lease: leaseOf(r.ID)}
		if etag, err = do(); err != nil {
			step.Op = "failed"
		} else if op != "delete" {
			step.Record = decodeRelay(r)
		}
		return step
	})
	if err == nil {
		if err = s.faults.After(ctx, op); err != nil {
			return "", err
		}
	}
	return etag, err
}

func (s recordedLeases) Create(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write(ctx, "create", r, func() (string, error) { return s.LeaseStore.Create(ctx, r) })
}

func (s recordedLeases) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	return s.write(ctx, "replace", r, func() (string, error) { return s.LeaseStore.Replace(ctx, r) })
}

func (s recordedLeases) Delete(ctx context.Context, id, etag string) error {
	_, err := s.write(ctx, "delete", changefeed.Record{ID: id}, func() (string, error) { return "", s.LeaseStore.Delete(ctx, id, etag) })
	return err
}

// Publisher returns a publisher that hands each group to the broker on its own.
func (p *Ports) Publisher(accept Accept) relayport.Publisher { return recordedPublisher{p, accept} }

type recordedPublisher struct {
	*Ports
	accept Accept
}

// Close implements relayport.Publisher.
func (recordedPublisher) Close(context.Context) error { return nil }

// Publish implements relay.Publisher.
func (p recordedPublisher) Publish(ctx context.Context, groups []relay.Group) error {
	var failed relay.PublishError
	answer := RelayStep{Host: p.host, Do: "answer"}
	for i := range groups {
		r := RelayResult{Key: strings.Clone(groups[i].Key)}
		var err error
		if err = relay.Ended(ctx); err != nil { // no send starts after the context has ended
			r.Kind = "ended"
		} else {
			r.N, err = p.send(ctx, &answer, &groups[i], len(groups))
		}
		if err != nil {
			failed.Keys = append(failed.Keys, relay.KeyError{Group: i, Sent: r.N, Err: err})
			if e, ok := errors.AsType[*relay.Error](err); ok && e.Class == relay.Refused {
				r.Kind = "refused"
			} else if r.Kind == "" {
				r.Kind = "failed"
			}
		}
		answer.Results = append(answer.Results, r)
	}
	if ctx.Err() != nil {
		answer.Kind = "ended"
	}
	p.log.Do(func() RelayStep { return answer })
	if len(failed.Keys) > 0 {
		return &failed
	}
	return nil
}

func (p recordedPublisher) send(ctx context.Context, answer *RelayStep, g *relay.Group, keys int) (accepted int, err error) {
	key, ids := strings.Clone(g.Key), make([]string, len(g.Messages))
	for n := range g.Messages {
		ids[n] = strings.Clone(g.Messages[n].ID)
	}
	p.log.Do(func() RelayStep {
		if answer.Call == 0 && p.log != nil {
			p.log.calls++
			answer.Call = p.log.calls
		}
		return RelayStep{Host: p.host, Do: "send", Call: answer.Call, Key: key, IDs: ids, Keys: keys}
	})
	// A host that is stopped here continues with the send later, when another host may own the range.
	if err := p.faults.Before(context.WithoutCancel(ctx), "send"); err != nil {
		return 0, &relay.Error{Class: relay.Outage, Reason: "simulated", Err: err}
	}
	p.log.Do(func() RelayStep {
		var arrived int
		arrived, accepted, err = p.accept(key, ids)
		return RelayStep{Host: p.host, Do: "arrive", Call: answer.Call, Key: key, N: arrived}
	})
	if lost := p.faults.After(ctx, "send"); lost != nil {
		return 0, &relay.Error{Class: relay.Outage, Reason: "simulated", Err: lost}
	}
	return accepted, err
}

// decodeRelay reads a lease record.
func decodeRelay(r changefeed.Record) *RelayRecord {
	d := &RelayRecord{Record: decode(r)}
	p := propertiesOf(r)
	d.History, d.Lost = p["history"], p["lost"] != ""
	d.Ahead = aheadOf(p["ahead"])
	return d
}

func parkedIDs(events []relay.ParkedEvent) []string {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = strings.Clone(events[i].ID)
	}
	return ids
}
