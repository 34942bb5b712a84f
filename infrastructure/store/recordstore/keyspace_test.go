package recordstore_test

import (
	"fmt"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/recordstore"
)

// A value is taken by one read at a time, and ranges that are no longer read do not fill the
// cache.
func TestRangeCache(t *testing.T) {
	t.Parallel()
	m := recordstore.NewRangeCache[int](10)
	at := func(n int) changefeed.FeedRange { return changefeed.FeedRange{Min: fmt.Sprint(n)} }
	m.Keep(at(1), 1)
	m.Keep(at(2), 2)
	if first, again, other := m.Take(at(1)), m.Take(at(1)), m.Take(at(2)); first != 1 || again != 0 || other != 2 {
		t.Errorf("took %d, then %d; of the other range %d", first, again, other)
	}
	for n := range 100 {
		m.Keep(at(n), 1)
	}
	kept := 0
	for n := range 100 {
		kept += m.Take(at(n))
	}
	if kept == 0 || kept > 11 {
		t.Errorf("%d ranges are kept, want some of about 10", kept)
	}
	if m.Keep(at(1), 7); m.Take(at(1)) != 7 {
		t.Error("the last value is not kept")
	}
}

// A continuation is later than the time at which a reader started: after it, an event counts whenever it was stored.
func TestContinuationReplacesTheStart(t *testing.T) {
	t.Parallel()
	space, err := recordstore.SplitKeySpace(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	for continuation, want := range map[string]time.Time{"": since, recordstore.Token(5): {}} {
		r, err := recordstore.ParseRequest(space, changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: continuation, Since: since})
		if err != nil || !r.Since.Equal(want) {
			t.Errorf("continuation %q: since %v, %v; want %v", continuation, r.Since, err, want)
		}
	}
}
