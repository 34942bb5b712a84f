package changefeed

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// newPresence returns the presence of a host and its store.
func newPresence(t *testing.T) (*faultyStore, *presence, *manualClock) {
	t.Helper()
	d, e := newFaultyStore(t)
	return d, &presence{env: e, etags: &etagHistory{}, swept: sweepSchedule{}}, e.clock.(*manualClock)
}

// A spare host writes rarely, and not while the fleet changes. A host whose leases are
// listed writes none.
func TestHeartbeatIsWrittenWhileHostOwnsNothing(t *testing.T) {
	d, p, c := newPresence(t)
	const id = "p.host.a.1"
	look := func(what string, later time.Duration, owner, spare, fast bool, leases []Lease, written bool) {
		t.Helper()
		c.now = c.now.Add(later)
		before := d.writes
		p.updateHeartbeat(t.Context(), listing{leases: leases}, c.now, owner, spare, fast)
		if d.writes > before != written {
			t.Errorf("%s: written %t", what, !written)
		}
		var h heartbeat
		want := heartbeat{ID: id, Host: "a", Incarnation: "1", ExpiryMS: 20000, Spare: spare, Timestamp: c.now.Format(timestampFormat)}
		if written && (json.Unmarshal(d.records[id].Body, &h) != nil || h != want) {
			t.Errorf("%s: written %+v, want %+v", what, h, want)
		}
	}
	mine := []Lease{{ID: "p..-FF", Owner: "a", Incarnation: "1"}}
	others := []Lease{{ID: "p..-FF", Owner: "b", Incarnation: "2"}}
	renew, rarely := p.opts.Renew, 50*p.opts.Expiry
	look("spare, in a fleet that changes", 0, false, true, true, others, false)
	look("spare", 0, false, true, false, others, true)
	look("spare for a while", rarely-1, false, true, false, others, false)
	look("spare for long", 1, false, true, false, others, true)
	look("spare for long, in a fleet that changes", rarely, false, true, true, others, true)
	look("due something", 1, false, false, true, others, true)
	look("due something for a while", renew-1, false, false, true, others, false)
	look("due something for long", 1, false, false, false, others, true)
	look("owner of what was not seen yet", time.Hour, true, false, true, others, false)
	if _, there := d.records[id]; !there {
		t.Error("it is not to be seen at all")
	}
	look("owner", time.Second, true, false, true, mine, false)
	if _, there := d.records[id]; there {
		t.Error("a heartbeat of an owner")
	}
	d.fail["delete"] = errTest
	look("owner of no record", time.Second, true, false, true, mine, false)
	d.expectEvents(t, "there is nothing to delete")
}

func TestFailedHeartbeatIsReportedAndRetried(t *testing.T) {
	d, p, c := newPresence(t)
	d.fail["create"] = errTest
	for range 2 {
		p.updateHeartbeat(t.Context(), listing{}, c.now, false, false, false)
		d.expectEvents(t, "it cannot be created", LeaseError{Op: "heartbeat", Err: errTest})
	}
	d.fail = map[string]error{}
	p.updateHeartbeat(t.Context(), listing{}, c.now, false, false, false)
	d.fail["delete"] = errTest
	p.deleteHeartbeat(t.Context())
	d.expectEvents(t, "it cannot be deleted", LeaseError{Op: "heartbeat", Err: errTest})
	d.fail = map[string]error{}
	if p.write(t.Context(), heartbeat{}, c.now) { // the record that stayed is found
		t.Error("it was created beside the one that stayed")
	}
	for _, err := range []error{ErrETagMismatch, ErrNotFound} {
		d.fail["delete"] = err
		p.deleteHeartbeat(t.Context())
		d.expectEvents(t, "it was deleted by another")
		p.write(t.Context(), heartbeat{}, c.now)
	}
	d.fail = map[string]error{"read": errors.New("it cannot be read either")}
	p.etag = "old"
	if p.write(t.Context(), heartbeat{}, c.now) || p.etag != "old" {
		t.Errorf("its ETag is unknown, not %q", p.etag)
	}
}

// Failed deletes are repeated once in a while.
// a.0 is a former process of this host.
func TestOldHeartbeatsAreDeleted(t *testing.T) {
	d, p, c := newPresence(t)
	expiry := p.opts.Expiry
	var seen listing
	for _, h := range []heartbeat{{Host: "a", Incarnation: "1"}, {Host: "a", Incarnation: "0"}, {Host: "b", Incarnation: "2"}, {Host: "c", Incarnation: "3", Spare: true}} {
		d.putBody(t, p.ids.host(h.Host, h.Incarnation), h)
		h.etag = d.records[p.ids.host(h.Host, h.Incarnation)].ETag
		seen.hosts = append(seen.hosts, h)
	}
	p.etags.observe(slices.Collect(maps.Values(d.records)), c.now)
	look := func(what string, later time.Duration, want ...string) {
		t.Helper()
		c.now = c.now.Add(later)
		p.deleteOldHeartbeats(t.Context(), seen, c.now)
		if got := slices.Sorted(maps.Keys(d.records)); !slices.Equal(got, want) {
			t.Errorf("%s: there are %v, want %v", what, got, want)
		}
	}
	look("not gone for long", 10*expiry-1, "p.host.a.0", "p.host.a.1", "p.host.b.2", "p.host.c.3")
	d.fail["delete"] = errTest
	look("it fails", 1, "p.host.a.0", "p.host.a.1", "p.host.b.2", "p.host.c.3")
	d.expectEvents(t, "another host retries")
	d.fail = map[string]error{}
	look("tried just now", 30*expiry-1, "p.host.a.0", "p.host.a.1", "p.host.b.2", "p.host.c.3")
	look("tried again", 1, "p.host.a.1", "p.host.c.3")
	look("spare, not for long", 60*expiry-1, "p.host.a.1", "p.host.c.3")
	look("spare, for long", 1, "p.host.a.1")
}

// recordingStore is a lease store that records its writes.
type recordingStore struct {
	LeaseStore
	written []string
}

func (s *recordingStore) Create(_ context.Context, r Record) (string, error) {
	s.written = append(s.written, string(r.Body))
	return "e", nil
}

func (s *recordingStore) Replace(ctx context.Context, r Record) (string, error) {
	return s.Create(ctx, r)
}

// The old record would make other hosts plan without this host, or with it.
func TestSpareChangeIsWrittenAtOnce(t *testing.T) {
	o, err := (&Options{}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	store := &recordingStore{}
	p := &presence{env: &env{opts: o, store: store, obs: &Observer{}}, etags: &etagHistory{}, swept: sweepSchedule{}}
	now := time.Unix(100, 0)
	for n, spare := range []bool{true, false, true} {
		now = now.Add(time.Second)
		for range 2 { // once is enough
			p.updateHeartbeat(t.Context(), listing{}, now, false, spare, false)
		}
		if len(store.written) != n+1 || strings.Contains(store.written[n], `"spare":true`) != spare {
			t.Fatalf("%d: spare %t; written %q", n, spare, store.written)
		}
	}
}

func TestHeartbeatIsRestoredAfterDeletionOrLostReply(t *testing.T) {
	store, e := newMapStore(t)
	p := &presence{env: e, swept: sweepSchedule{}}
	beat := func(what string, want bool) {
		t.Helper()
		if ok := p.write(t.Context(), heartbeat{}, time.Now()); ok != want {
			t.Errorf("%s: written %t, want %t", what, ok, want)
		}
	}
	id := e.ids.host("a", "1")
	store.lose = true
	beat("the answer to the first gets lost", false)
	beat("it finds its own", false)
	beat("and continues from it", true)
	store.lose = true
	beat("the answer to the next gets lost", false)
	beat("it finds its own", false)
	beat("and continues from it", true)
	delete(store.records, id)
	beat("another host deleted it", false)
	beat("so it is created", true)
	var h heartbeat
	if err := json.Unmarshal(store.records[id].Body, &h); err != nil || h.Host != "a" {
		t.Errorf("the record is %+v, error %v", h, err)
	}
}
