package changefeed

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"
)

// namedFeed is a feed with a name, which counts the requests for it.
type namedFeed struct {
	Feed
	asked int
	err   error
}

func (f *namedFeed) Source(context.Context) (Source, error) {
	f.asked++
	return Source{Database: "db", Container: "c"}, f.err
}

// An unreadable record is refused each time. The container's name is requested until known,
// and only changed records are decoded.
func TestListingClassifiesEachRecord(t *testing.T) {
	d, e := newFaultyStore(t)
	c := e.clock.(*manualClock)
	feed := &namedFeed{err: errTest}
	e.feed, e.ids = feed, recordIDs{}
	l := &lister{env: e}
	if _, err := l.list(t.Context()); !errors.Is(err, errTest) {
		t.Fatalf("of an unknown container: error %v", err)
	}
	feed.err = nil
	ids := recordIDs{prefix: "changefeed_db_c"}
	kept := d.keep(t, Lease{ID: ids.info(), Version: 1, Since: time.Unix(5, 0).UTC()})
	info, err := decodeLease(d.records[kept.ID])
	if err != nil {
		t.Fatal(err)
	}
	lease := d.keep(t, Lease{ID: ids.lease(FullRange()), Version: 1, Token: "-FF", Range: FullRange(), Continuation: `"5"`})
	d.putBody(t, ids.pause(), map[string]string{"id": ids.pause()})
	d.putBody(t, ids.host("b", "2"), map[string]any{"host": "b", "incarnation": "2", "expiryMs": 7})
	d.putBody(t, ids.host("b", "3"), map[string]any{"host": 3})
	d.putBody(t, ids.all()+"other", map[string]string{})
	d.putBody(t, ids.lease(rng("", "x")), []string{})
	look := func(what string, want Lease) {
		t.Helper()
		seen, err := l.list(t.Context())
		hosts := []heartbeat{{Host: "b", Incarnation: "2", ExpiryMS: 7}}
		if err != nil || !seen.paused || !reflect.DeepEqual(seen.info, &info) || !reflect.DeepEqual(seen.hosts, hosts) || !reflect.DeepEqual(seen.leases, []Lease{want}) {
			t.Errorf("%s: seen %+v, error %v; want %+v", what, seen, err, want)
		}
		if len(seen.refused) != 1 || seen.refused[0].ID != ids.lease(rng("", "x")) || seen.refused[0].Reason == "" {
			t.Errorf("%s: refused %+v", what, seen.refused)
		}
	}
	look("first", lease)
	look("again", lease)
	if feed.asked != 2 {
		t.Errorf("the feed was asked %d times for its name, want twice, as the first failed", feed.asked)
	}
	marked, known := l.decoded[lease.ID]
	if marked.Handled = 99; !known {
		t.Fatal("decoded records were forgotten")
	}
	l.decoded[lease.ID] = marked
	look("unchanged, it is not decoded", marked)
	lease.Continuation = `"6"`
	if err := lease.replace(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	look("changed, it is", lease)

	seen := c.now // of the lease
	c.now = c.now.Add(5 * time.Second)
	d.fail["list"] = errTest
	if _, err := l.list(t.Context()); !errors.Is(err, errTest) {
		t.Errorf("a store that cannot be listed: error %v", err)
	}
	if since := l.etags.unchangedFor(lease.ID, c.now); since != c.now.Sub(seen) {
		t.Errorf("after a failed listing the lease is unchanged for %s, want 5 s", since)
	}
}
