package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// Leases of physical ranges come from older .NET processors.
func TestVersion0LeasesAreContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.put(100, 20)
		ranges, err := w.feed.Ranges(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		prefix := "changefeedmemory_db_coll"
		create(t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
		for i, r := range ranges {
			id := fmt.Sprintf("%s..%d", prefix, i)
			create(t, w, id, fmt.Sprintf(`{"id":%q,"LeaseToken":"%d","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":"net",`+
				`"ContinuationToken":"\"60\"","properties":{},"timestamp":"2026-01-01T00:00:00.0000000Z"}`, id, i, r.Min, r.Max))
		}
		w.start("a", nil, nil)
		eventually(t, 80*time.Second, "the rest is delivered", func() bool { return w.got.count() == 40 })
		w.feed.Split(memfeed.EPK("key-1"))
		w.put(50, 20)
		eventually(t, 30*time.Second, "delivered across a split", func() bool { return w.got.distinct() == 90 })
		versions := map[int]int{}
		for _, l := range w.leases() {
			versions[l.Version]++
		}
		if versions[0] != 1 || versions[1] != 2 {
			t.Errorf("lease versions after a split of one: %v", versions)
		}
	})
}

// Nothing is changed, also if the info record is missing.
func TestLeasesThatCannotBeContinuedAreRefused(t *testing.T) {
	for _, initialised := range []bool{true, false} {
		w := newWorld(t, 1)
		prefix := "changefeedmemory_db_coll"
		create(t, w, prefix+"..0", fmt.Sprintf(`{"id":%q,"LeaseToken":"0","Owner":null,"ContinuationToken":"\"60\""}`, prefix+"..0"))
		if initialised {
			create(t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
		}
		before, _ := w.store.List(t.Context(), "")
		p, err := changefeed.New(w.feed, w.store, w.got, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err = p.Run(ctx)
		cancel()
		var refused *changefeed.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "FeedRange") || !strings.Contains(err.Error(), prefix+"..0") {
			t.Errorf("initialised %t: error %v", initialised, err)
		}
		if after, _ := w.store.List(t.Context(), ""); !reflect.DeepEqual(after, before) {
			t.Errorf("initialised %t: the records are now %s", initialised, after)
		}
	}
}

// Owned leases are still processed, and the host reports the unreadable one.
func TestUnreadableLeaseDoesNotStopTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var refused atomic.Int32
		h := w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseError: func(e changefeed.LeaseError) {
			if _, ok := errors.AsType[*changefeed.RefusedError](e.Err); ok && e.Op == "cycle" && e.Lease == "" {
				refused.Add(1)
			}
		}}})
		defer h.crash() // ends its work also if Run has ended without
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		const bad = "changefeedmemory_db_coll..0"
		create(t, w, bad, fmt.Sprintf(`{"id":%q,"LeaseToken":"0"}`, bad))
		time.Sleep(time.Minute)
		w.put(10, 10)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 10 })
		select {
		case err := <-h.done:
			t.Fatalf("the host ended with %v", err)
		default:
		}
		if refused.Load() == 0 {
			t.Error("the observer was not notified")
		}
	})
}

func create(t *testing.T, w *world, id, body string) {
	t.Helper()
	if _, err := w.store.Create(t.Context(), changefeed.Record{ID: id, Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
}

// Errors after the initialization never end a host, also one that is spare.
func TestUnreadableLeaseDoesNotStopASpareHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		o := &changefeed.Options{Observer: &changefeed.Observer{}}
		a := w.start("a", nil, o)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		b := w.start("b", nil, o)
		defer a.crash()
		defer b.crash()
		time.Sleep(5 * time.Minute)
		const bad = "changefeedmemory_db_coll..0"
		create(t, w, bad, fmt.Sprintf(`{"id":%q,"LeaseToken":"0"}`, bad))
		time.Sleep(5 * time.Minute)
		select {
		case err := <-b.done:
			b.done <- nil
			t.Errorf("the spare host, which was initialized, ended with %v", err)
		default:
		}
	})
}
