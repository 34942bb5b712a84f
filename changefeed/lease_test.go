package changefeed

import (
	"reflect"
	"testing"
	"time"
)

// A child begins where its parent stands, with what is known of the documents behind
// the checkpoint and what an operator has asked for.
func TestAChildInherits(t *testing.T) {
	parent := Lease{
		ID: "p", Epoch: 4, LSN: 7, ChangeTime: 70, Attempts: []DocumentAttempts{{"8:a", 2}},
		Request: Request{Paused: true, Release: true, Rewind: &RangeToken{Range: FullRange(), Continuation: `"3"`, Since: time.Unix(30, 0)}},
	}
	r := FeedRange{Min: "", Max: "20"}
	now := time.Unix(100, 0)
	want := Lease{
		ID: "p..-20", Version: 1, Token: "-20", Range: r, Mode: modeIncremental, State: LeasePending, Parent: "p", Epoch: 4,
		Continuation: `"7"`, Since: time.Unix(60, 0), LSN: 7, ChangeTime: 70, Attempts: parent.Attempts, Timestamp: now,
		Request: Request{Paused: true, Rewind: &RangeToken{Range: r, Continuation: `"3"`, Since: time.Unix(30, 0)}},
	}
	if got := parent.child(RangeToken{Range: r, Continuation: `"7"`, Since: time.Unix(60, 0)}, "p..-20", now); !reflect.DeepEqual(got, want) {
		t.Errorf("child %+v\nwant  %+v", got, want)
	}
}

// Requests are the same if they ask for the same.
func TestRequestsAreCompared(t *testing.T) {
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
