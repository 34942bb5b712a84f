package changefeed

import (
	"reflect"
	"testing"
	"time"
)

func TestChildInheritsProgressAndRequests(t *testing.T) {
	parent := Lease{
		ID: "p", Epoch: 4, LSN: 7, ChangeTime: 70, Ahead: Ahead{LSN: 9, Held: []HeldKey{{LSN: 8, ID: "a", Refusals: 2}}},
		Request: Request{Paused: true, Release: true, Rewind: &RangeToken{Range: FullRange(), Continuation: `"3"`, Since: time.Unix(30, 0)}},
	}
	r := FeedRange{Min: "", Max: "20"}
	now := time.Unix(100, 0)
	want := Lease{
		ID: "p..-20", Version: 1, Token: "-20", Range: r, Mode: modeIncremental, State: LeasePending, Parent: "p", Epoch: 4,
		Continuation: `"7"`, Since: time.Unix(60, 0), LSN: 7, ChangeTime: 70, Ahead: parent.Ahead, Timestamp: now,
		Request: Request{Paused: true, Rewind: &RangeToken{Range: r, Continuation: `"3"`, Since: time.Unix(30, 0)}},
	}
	if got := parent.child(RangeToken{Range: r, Continuation: `"7"`, Since: time.Unix(60, 0)}, "p..-20", now); !reflect.DeepEqual(got, want) {
		t.Errorf("child %+v\nwant  %+v", got, want)
	}
}

func TestRequestsAreComparedByContent(t *testing.T) {
	to := func(continuation string, since int64) *RangeToken {
		return &RangeToken{Continuation: continuation, Since: time.Unix(since, 0)}
	}
	for name, c := range map[string]struct {
		a, b Request
		want bool
	}{
		"nothing":             {Request{}, Request{}, true},
		"a pause":             {Request{Paused: true}, Request{}, false},
		"the same pause":      {Request{Paused: true}, Request{Paused: true}, true},
		"a rewind":            {Request{}, Request{Rewind: to(`"1"`, 0)}, false},
		"its end":             {Request{Rewind: to(`"1"`, 0)}, Request{}, false},
		"the same rewind":     {Request{Rewind: to(`"1"`, 5)}, Request{Rewind: to(`"1"`, 5)}, true},
		"to another position": {Request{Rewind: to(`"1"`, 5)}, Request{Rewind: to(`"2"`, 5)}, false},
		"to another time":     {Request{Rewind: to("", 5)}, Request{Rewind: to("", 6)}, false},
		"a rewind and a try":  {Request{Rewind: to(`"1"`, 5), Retry: true}, Request{Rewind: to(`"1"`, 5)}, false},
	} {
		if got := c.a.equal(c.b); got != c.want {
			t.Errorf("%s: the same %t, want %t", name, got, c.want)
		}
	}
}

func TestSplitPassesStartTimeToChildren(t *testing.T) {
	since := time.Unix(5, 0)
	l := Lease{Range: FullRange(), Since: since, Owner: "a", Incarnation: "1", Epoch: 2}
	l.replaceBy([]FeedRange{{Max: "20"}, {Min: "20", Max: maxKey}})
	if len(l.Children) != 2 || !l.Children[0].Since.Equal(since) || !l.Children[1].Since.Equal(since) || l.Owner != "" || l.State != LeaseSplit {
		t.Errorf("split %+v", l)
	}
}

func TestLifetime(t *testing.T) {
	for name, c := range map[string]struct {
		lease Lease
		want  time.Duration
	}{
		"unowned":                            {Lease{Expiry: time.Hour}, 0},
		"with the observer's expiry":         {Lease{Owner: "a", Expiry: 20 * time.Second}, 20 * time.Second},
		"with a longer one":                  {Lease{Owner: "a", Expiry: time.Hour}, time.Hour},
		"with a shorter one":                 {Lease{Owner: "a", Expiry: time.Second}, 20 * time.Second},
		"of another product":                 {Lease{Owner: "net"}, time.Minute},
		"taken from our host, then released": {Lease{takenOver: true, Expiry: time.Hour}, time.Hour},
	} {
		if got := c.lease.lifetime(20 * time.Second); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
