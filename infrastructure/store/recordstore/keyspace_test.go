package recordstore_test

import (
	"errors"
	"fmt"
	"reflect"
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
	space, err := recordstore.SplitKeySpace(2, 4)
	if err != nil {
		t.Fatal(err)
	}
	start := changefeed.ReadRequest{Range: space[1], Since: time.Now(), MaxItems: 7}
	later := start
	later.Continuation = recordstore.Token(5)
	unbounded := start
	unbounded.MaxItems = 0
	continued, byDefault := later, start
	continued.Since, byDefault.MaxItems = time.Time{}, 100
	const low, high = 1 << (recordstore.HashBits - 1), 1 << recordstore.HashBits
	for _, c := range []struct {
		asked changefeed.ReadRequest
		want  recordstore.Request
	}{
		{start, recordstore.Request{ReadRequest: start, Low: low, High: high}},
		{later, recordstore.Request{ReadRequest: continued, Low: low, High: high, Position: 5}},
		{unbounded, recordstore.Request{ReadRequest: byDefault, Low: low, High: high}},
	} {
		if got, err := recordstore.ParseRequest(space, c.asked); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v is read as %+v, %v; want %+v", c.asked, got, err, c.want)
		}
	}
}

// A repetition of such a request cannot succeed, so the range stops.
func TestRequestOfAnotherFeedIsPermanentlyRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []changefeed.ReadRequest{
		{Range: changefeed.FullRange(), Continuation: `"-5"`},
		{Range: changefeed.FullRange(), Continuation: "5"},
		{Range: changefeed.FeedRange{Min: "none", Max: "FF"}},
		{Range: changefeed.FeedRange{Min: "", Max: "123456789"}},
	} {
		if got, err := recordstore.ParseRequest(recordstore.KeySpace{changefeed.FullRange()}, r); !errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("%+v is read as %+v, %v", r, got, err)
		}
	}
}
