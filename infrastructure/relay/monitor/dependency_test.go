package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/httpapi"
)

// With everything this process needs away it is ready all the same, for a restart would
// cure nothing; but the body of the probe says what is wrong, and since when.
func TestReadinessReportsDependencies(t *testing.T) {
	needs := NewDependencies(time.Now, "cosmos", "serviceBus")
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for _, one := range needs {
		one.now = func() time.Time { return now }
	}
	ops := httpapi.NewOps(&httpapi.OpsOptions{Dependencies: func() map[string]httpapi.Dependency {
		shown := map[string]httpapi.Dependency{}
		for name, state := range needs.States() {
			shown[name] = httpapi.Dependency(state)
		}
		return shown
	}})
	probe := func() (status int, got map[string]httpapi.Dependency) {
		w := httptest.NewRecorder()
		ops.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		var body struct{ Dependencies map[string]httpapi.Dependency }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		return w.Code, body.Dependencies
	}
	if status, got := probe(); status != http.StatusOK || got["cosmos"].Status != "unknown" || got["serviceBus"].Status != "unknown" {
		t.Errorf("before the first use: %d %+v", status, got)
	}
	needs["cosmos"].Note(nil)
	needs["serviceBus"].Batch(relay.BatchReport{Messages: 1, Err: &relay.Error{Class: relay.Refused, Reason: "too_large"}})
	if _, got := probe(); got["cosmos"].Status != "ok" || got["serviceBus"].Status != "ok" || !got["cosmos"].Answered.Equal(now) {
		t.Errorf("while both answer: %+v", got)
	}
	failed := now.Add(time.Minute)
	now = failed
	needs["cosmos"].Note(errors.New("dial tcp: connection refused"))
	needs["serviceBus"].Batch(relay.BatchReport{Err: &relay.Error{Class: relay.Outage, Reason: "unreachable"}})
	now = now.Add(70 * time.Second)
	needs["cosmos"].Note(errors.New("dial tcp: i/o timeout"))
	needs["cosmos"].Note(context.Canceled) // tells nothing
	status, got := probe()
	for name, want := range map[string]string{"cosmos": "i/o timeout", "serviceBus": "unreachable"} {
		if d := got[name]; d.Status != "failing" || !d.Failing.Equal(failed) || !strings.Contains(d.Error, want) {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if status != http.StatusOK {
		t.Errorf("an outage makes the probe answer %d", status)
	}
	needs["cosmos"].Note(nil)
	if _, got := probe(); got["cosmos"].Status != "ok" || got["cosmos"].Error != "" {
		t.Errorf("after the outage: %+v", got)
	}
}

// A message that is refused alone is an answer of a broker that works. A missing topic, queue or right is not,
// and neither is a message that was never sent.
func TestBrokerWorksOnlyIfItAnswers(t *testing.T) {
	batch := func(messages, accepted int, err error) relay.BatchReport {
		return relay.BatchReport{Messages: messages, Accepted: accepted, Err: err}
	}
	failure := func(class relay.Class, ambiguous bool) error {
		return fmt.Errorf("send: %w", &relay.Error{Class: class, Ambiguous: ambiguous, Reason: "x"})
	}
	for _, tc := range []struct {
		name string
		r    relay.BatchReport
		want string // after "ok" and after "failing"
	}{
		{"accepted", batch(2, 2, nil), "ok ok"},
		{"the link to a missing topic does not open", batch(0, 0, failure(relay.Blocked, false)), "failing failing"},
		{"no queue is bound for some messages", batch(2, 1, failure(relay.Blocked, false)), "failing failing"},
		{"outage", batch(1, 0, failure(relay.Outage, true)), "failing failing"},
		{"message refused for its fault", batch(1, 0, failure(relay.Refused, false)), "ok ok"},
		{"message refused for a fault of it or of the set-up", batch(1, 0, failure(relay.Refused, true)), "ok failing"},
		{"the same beside an accepted message", batch(2, 1, failure(relay.Refused, true)), "ok ok"},
		{"message refused by the publisher", batch(0, 0, failure(relay.Refused, false)), "ok failing"},
		{"the lease ended during a send", batch(1, 0, fmt.Errorf("send: %w", context.DeadlineExceeded)), "ok failing"},
	} {
		d := NewDependencies(time.Now, "b")["b"]
		d.Note(nil)
		d.Batch(tc.r)
		got := d.state().Status
		d.Note(errors.New("away"))
		d.Batch(tc.r)
		if got += " " + d.state().Status; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	d, next := NewDependencies(time.Now, "b")["b"], 0
	d.Pauses(relay.Observer{Paused: func(context.Context, relay.Pause) { next++ }}).Paused(t.Context(), relay.Pause{Err: failure(relay.Blocked, false)})
	if !d.Failing() || next != 1 {
		t.Errorf("a pause of all sends: failing %t, next hook called %d times", d.Failing(), next)
	}
}

// A relay that failed and then lost its ranges sends nothing more. Its last failure says nothing about the
// broker after a while, and must not keep an alert firing.
func TestFailureThatIsNotRepeatedBecomesUnknown(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	d := NewDependencies(func() time.Time { return now }, "b")["b"]
	want := func(when, status string) {
		t.Helper()
		if s := d.state(); s.Status != status || status != "ok" && s.Error != "away" {
			t.Errorf("%s: %+v, want %s with the last error", when, s, status)
		}
	}
	d.Note(errors.New("away"))
	for range 10 {
		now = now.Add(time.Minute)
		d.Note(errors.New("away"))
	}
	want("while it is used and fails", "failing")
	now = now.Add(time.Minute)
	want("a minute after the last use", "failing")
	now = now.Add(2 * time.Minute)
	want("three minutes after the last use", "unknown")
	d.Note(nil)
	now = now.Add(time.Hour)
	want("an hour after a success", "ok")
}

// The lag does not vanish with the store: it stays and ages until the store answers. That of a range
// that had caught up is unknown then, not zero.
func TestLagGaugeKeepsLastLagDuringOutage(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	failing := false
	pending := changefeed.RangeLag{Lease: changefeed.Lease{ID: "a"}, Transactions: 5, Age: time.Second, Known: true}
	idle := changefeed.RangeLag{Lease: changefeed.Lease{ID: "b"}, Known: true}
	measured := []changefeed.RangeLag{pending, idle}
	g := &LagGauge{Lag: func() []changefeed.RangeLag { return measured }, Failing: func() bool { return failing }, Now: func() time.Time { return now }}
	want := func(what string, ages map[string]time.Duration) {
		t.Helper()
		got := map[string]time.Duration{}
		for _, l := range g.current(measured) {
			got[l.ID] = l.Age
		}
		if len(got) != len(ages) {
			t.Errorf("%s: %v, want %v", what, got, ages)
		}
		for lease, age := range ages {
			if got[lease] != age {
				t.Errorf("%s: %v, want %v", what, got, ages)
			}
		}
	}
	want("before", map[string]time.Duration{"a": time.Second, "b": 0})
	failing, now = true, now.Add(30*time.Second)
	measured = []changefeed.RangeLag{{Lease: changefeed.Lease{ID: "a"}}, {Lease: changefeed.Lease{ID: "b"}}} // the feed cannot be read
	want("while it fails", map[string]time.Duration{"a": 31 * time.Second})
	measured, now = nil, now.Add(40*time.Second) // the leases have expired
	want("after 70 s", map[string]time.Duration{"a": 71 * time.Second})
	failing = false // another relay has the leases, and tells of them
	want("after the outage", map[string]time.Duration{})
}

// A relay is ready while the broker refuses everything, and not while the broker does not answer. New changes are read meanwhile.
func TestRelayIsNotReadyWhileSendsTimeOut(t *testing.T) {
	for reason, ready := range map[string]bool{"server_busy": true, "send_timeout": false} {
		synctest.Test(t, func(t *testing.T) {
			h := NewHealth(time.Now)
			o := h.Observer()
			o.Balanced(changefeed.Balanced{})
			o.BatchHandled(changefeed.BatchHandled{})
			pending := func() []changefeed.RangeLag { return []changefeed.RangeLag{{Known: true, Transactions: 3}} }
			for range 20 {
				time.Sleep(15 * time.Second)
				o.PageRead(changefeed.PageRead{Items: 1})
				o.BatchFailed(changefeed.BatchFailed{Err: &relay.Error{Class: relay.Outage, Reason: reason}})
			}
			if err := h.Ready(pending); (err == nil) != ready {
				t.Errorf("%s: %v, want ready %t", reason, err, ready)
			}
			o.BatchHandled(changefeed.BatchHandled{})
			if err := h.Ready(pending); err != nil {
				t.Errorf("%s: after a handled batch: %v", reason, err)
			}
		})
	}
}

// Changes that an open transaction of the store holds back cannot be sent, and a restart would not help.
func TestRelayIsReadyWhileTheStoreWithholdsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(time.Now)
		h.Observer().Balanced(changefeed.Balanced{})
		time.Sleep(time.Hour)
		withheld := func(n int64) func() []changefeed.RangeLag {
			return func() []changefeed.RangeLag {
				return []changefeed.RangeLag{{Known: true, Transactions: 3, Withheld: n}}
			}
		}
		if err := h.Ready(withheld(2)); err == nil {
			t.Error("ready, although 1 of 3 changes is not withheld")
		}
		if err := h.Ready(withheld(3)); err != nil {
			t.Errorf("all are withheld: %v", err)
		}
	})
}

// A page may be read here, and handled by the next owner of its range. That is no stall of later changes.
func TestRelayIsReadyAfterPagesOfRangesThatMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(time.Now)
		o := h.Observer()
		o.Balanced(changefeed.Balanced{})
		o.PageRead(changefeed.PageRead{Items: 3})
		lag := []changefeed.RangeLag{{Known: true}}
		ready := func() error { return h.Ready(func() []changefeed.RangeLag { return lag }) }
		for range 60 {
			time.Sleep(time.Minute)
			if err := ready(); err != nil {
				t.Errorf("idle: %v", err)
			}
		}
		lag[0].Transactions = 3
		if err := ready(); err != nil {
			t.Errorf("the first change after an hour: %v", err)
		}
		time.Sleep(stalled)
		if err := ready(); err == nil {
			t.Error("ready, although nothing was sent")
		}
	})
}

// Nobody may have asked while there was nothing to send.
func TestRelayIsReadyWhileItSendsTheFirstChangeInLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(time.Now)
		o := h.Observer()
		o.Balanced(changefeed.Balanced{})
		time.Sleep(time.Hour)
		o.PageRead(changefeed.PageRead{Items: 1})
		pending := func() []changefeed.RangeLag { return []changefeed.RangeLag{{Known: true, Transactions: 1}} }
		if err := h.Ready(pending); err != nil {
			t.Errorf("the first change after an hour: %v", err)
		}
		time.Sleep(stalled)
		if err := h.Ready(pending); err == nil {
			t.Error("ready, although nothing was sent")
		}
	})
}

// A restart gives the process new connections. Ranges of other relays are their concern, and
// reads that fail are an outage.
func TestRelayIsNotReadyWhileTheFeedIsSilent(t *testing.T) {
	h := NewHealth(time.Now)
	o := h.Observer()
	o.Balanced(changefeed.Balanced{})
	owned := []changefeed.RangeLag{{Lease: changefeed.Lease{ID: "l"}, Unknown: changefeed.UnknownUnread}}
	lag := func() []changefeed.RangeLag { return owned }
	ref := changefeed.LeaseRef{Lease: "l"}
	o.RangeUnread(changefeed.RangeUnread{LeaseRef: ref, For: time.Minute, Err: context.DeadlineExceeded})
	if err := h.Ready(lag); err != nil {
		t.Errorf("while reads fail: %v", err)
	}
	o.RangeUnread(changefeed.RangeUnread{LeaseRef: ref, Silent: true, For: time.Minute, Err: context.DeadlineExceeded})
	if err := h.Ready(lag); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not read for 1m0s") {
		t.Errorf("while the feed is silent: %v", err)
	}
	silent := owned
	owned = nil
	if err := h.Ready(lag); err != nil {
		t.Errorf("after another relay took the range: %v", err)
	}
	// No page of these is read, perhaps for days.
	for when, l := range map[string]changefeed.RangeLag{
		"after the range has come back":          {Unknown: changefeed.UnknownStarting},
		"while an operator has paused the range": {Known: true, Paused: true, Transactions: 3},
		"while the range is held":                {Unknown: changefeed.UnknownLost},
	} {
		l.Lease = changefeed.Lease{ID: "l"}
		owned = []changefeed.RangeLag{l}
		if err := h.Ready(lag); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	owned = silent
	o.PageRead(changefeed.PageRead{LeaseRef: ref})
	if err := h.Ready(lag); err != nil {
		t.Errorf("after a reply: %v", err)
	}
}

// The answers of one shard do not hide the failure of another, and a failure whose keys moved to another
// process does not hide the answers of the rest.
func TestBrokerAnswersIfAllShardsDo(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	d := NewDependencies(func() time.Time { return now }, "b")["b"]
	want := func(when string, failing bool) {
		t.Helper()
		if d.Failing() != failing {
			t.Errorf("%s: failing %t", when, !failing)
		}
	}
	down := &relay.Error{Class: relay.Outage, Reason: "busy"}
	d.Batch(relay.BatchReport{Shard: "x", Err: down})
	d.Batch(relay.BatchReport{Shard: "y", Messages: 1, Accepted: 1})
	want("x is away", true)
	d.Batch(relay.BatchReport{Shard: "x", Messages: 1, Accepted: 1})
	want("both answer", false)
	d.Pauses(relay.Observer{Paused: func(context.Context, relay.Pause) {}}).Paused(t.Context(), relay.Pause{Shard: "y", Err: down})
	d.Batch(relay.BatchReport{Shard: "x", Messages: 1, Accepted: 1})
	want("y is paused", true)
	now = now.Add(abandoned + time.Second)
	d.Batch(relay.BatchReport{Shard: "x", Messages: 1, Accepted: 1})
	want("y was not used since", false)
}
