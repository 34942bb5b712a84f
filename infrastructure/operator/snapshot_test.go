package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/domain/fault"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// errHangs makes the handler of newRelayed block, so that its owner stores no checkpoint.
var errHangs = errors.New("hangs")

// newRelayed runs a processor over a feed and returns an operator of it. The processor's handler
// returns the error while there is one.
func newRelayed(t *testing.T, feed changefeed.Feed) (*Operator, *atomic.Pointer[error]) {
	t.Helper()
	leases, failing := memstore.New(nil), &atomic.Pointer[error]{}
	handle := changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
		if err := failing.Load(); err != nil {
			if errors.Is(*err, errHangs) {
				<-ctx.Done()
			}
			return *err
		}
		return nil
	})
	p, err := changefeed.New(feed, leases, handle, &changefeed.Options{
		Processor: "feedbox", Host: "a", Expiry: 20 * time.Second, Renew: 5 * time.Second, PollMin: 10 * time.Millisecond, PollMax: 20 * time.Millisecond, // changes are read at once
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(time.Minute)
	cfg := &config.Relay{Processor: "feedbox", EventTTL: time.Hour}
	cfg.Lease.Renew = 5 * time.Second
	return New(cfg, Store{Store: relayport.Store{Feed: feed, Leases: leases}}, nil), failing
}

// An owner stores its checkpoint up to a second after the broker accepted an event. Otherwise a
// healthy relay would always have a lag of about a second.
func TestAcceptedEventsAreNoLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := memfeed.New(nil)
		o, failing := newRelayed(t, feed)
		measure := func(what string, behind int64) Snapshot {
			t.Helper()
			s, err := o.Measure(t.Context())
			if err != nil || s.Behind != behind || s.Unknown != 0 || (s.Oldest > 0) != (behind > 0) {
				t.Errorf("%s: %d behind of %s, %d unknown, %v; want %d behind", what, s.Behind, s.Oldest, s.Unknown, err, behind)
			}
			return s
		}
		for i := range 20 {
			committed := time.Now()
			feed.Put(memfeed.Document{Key: "k", ID: "e"})
			time.Sleep(100*time.Millisecond + time.Duration(i)*40*time.Millisecond)
			if s := measure("accepted", 0); i < 5 && s.Handled().After(committed.Add(time.Second)) {
				t.Errorf("all before %s counts as handled, which is not known of the event of %s", s.Handled(), committed)
			}
		}
		away := errors.New("away")
		failing.Store(&away)
		feed.Put(memfeed.Document{Key: "k", ID: "e"})
		time.Sleep(10 * time.Second)
		measure("refused", 1)
		failing.Store(nil)
		time.Sleep(time.Minute)
		measure("sent", 0)
		if err := o.Leases.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		feed.Put(memfeed.Document{Key: "k", ID: "e"})
		measure("paused", 1)
	})
}

// Between two renewals an owner that stores no checkpoint looks like one that was killed: its lease is
// healthy and not silent yet.
func TestEventsWithoutACheckpointAreALag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := memfeed.New(nil)
		o, failing := newRelayed(t, feed)
		feed.Put(memfeed.Document{Key: "k", ID: "e"}) // its checkpoint delays the next renewal
		time.Sleep(500 * time.Millisecond)
		failing.Store(&errHangs)
		feed.Put(memfeed.Document{Key: "k", ID: "e"})
		for _, step := range []struct{ later, behind int64 }{{100, 0}, {2920, 1}} {
			time.Sleep(time.Duration(step.later) * time.Millisecond)
			s, err := o.Measure(t.Context())
			if err != nil || s.Behind != step.behind || s.Ranges[0].Silent > 0 || s.Ranges[0].Lag.Oldest.IsZero() {
				t.Errorf("%d ms later: %d behind, range %+v, %v; want %d", step.later, s.Behind, s.Ranges[0], err, step.behind)
			}
		}
	})
}

// held is a feed that withholds changes for two seconds.
type held struct{ *memfeed.Container }

// Read implements changefeed.Feed.
func (h held) Read(ctx context.Context, r changefeed.ReadRequest) (*changefeed.Page, error) {
	page, err := h.Container.Read(ctx, r)
	if err == nil {
		page.Withheld, page.WithheldSince = 2, time.Now().Add(-2*time.Second)
	}
	return page, err
}

// No owner has read what the store withholds, so it is not in flight.
func TestWithheldChangesAreALagFromTheFirstSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := memfeed.New(nil)
		o, _ := newRelayed(t, feed)
		o.Leases = changefeed.NewOperator(held{feed}, o.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		for range 12 { // longer than the time between two renewals
			time.Sleep(700 * time.Millisecond)
			s, err := o.Measure(t.Context())
			if err != nil || s.Behind != 2 || s.Oldest < time.Second {
				t.Errorf("%d behind of %s, %v; want the 2 withheld changes", s.Behind, s.Oldest, err)
			}
		}
	})
}

// slow is a feed whose reads take a while. An event is committed after the first read.
type slow struct {
	*memfeed.Container
	measuring bool
	committed time.Time
}

// Read implements changefeed.Feed.
func (s *slow) Read(ctx context.Context, r changefeed.ReadRequest) (*changefeed.Page, error) {
	page, err := s.Container.Read(ctx, r)
	if s.measuring && s.committed.IsZero() {
		time.Sleep(time.Second)
		s.Put(memfeed.Document{Key: "k", ID: "e"})
		s.committed = time.Now()
		time.Sleep(4 * time.Second) // the other ranges
	}
	return page, err
}

func TestHandledIsBeforeTheMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := memfeed.New(nil)
		o, _ := newRelayed(t, feed)
		during := &slow{Container: feed, measuring: true}
		o.Leases = changefeed.NewOperator(during, o.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		s, err := o.Measure(t.Context())
		if err != nil || during.committed.IsZero() {
			t.Fatal(err)
		}
		if handled := s.Handled(); during.committed.Add(time.Second).Before(handled) {
			t.Errorf("an event committed at %s during the measurement counts as handled: all before %s does", during.committed, handled)
		}
	})
}

// every decodes each document as an event.
type every struct{}

func (every) Decode([]byte) (relay.Message, bool, error) { return relay.Message{}, true, nil }

// The transaction of the checkpoint was handled; the next one was not.
func TestPlanOfAReplayEndsWithTheTransactionOfTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := memfeed.New(nil)
		o, failing := newRelayed(t, feed)
		o.store.Decoder = every{}
		from := time.Now().Add(-time.Second)
		feed.Put(memfeed.Document{Key: "k", ID: "e1"})
		time.Sleep(10 * time.Second)
		last := time.Now()
		feed.Put(memfeed.Document{Key: "k", ID: "e2"}, memfeed.Document{Key: "k", ID: "e3"})
		time.Sleep(time.Minute)
		away := errors.New("away")
		failing.Store(&away)
		feed.Put(memfeed.Document{Key: "k", ID: "e4"})
		time.Sleep(time.Minute)
		read := 0
		plan, err := o.PlanReplay(t.Context(), from, time.Hour, func(n int) { read += n })
		if err != nil || len(plan) != 1 || plan[0].Events != 3 || plan[0].Covered != 3 || plan[0].Left != "" || read < 3 {
			t.Errorf("%+v after %d documents, %v; want the 3 handled events", plan, read, err)
		}
		// Unsent events may be of the same second as the last handled one, and a rewind would skip them.
		for _, from := range []time.Time{last.Truncate(time.Second), last.Add(time.Second)} {
			if plan, err := o.PlanReplay(t.Context(), from, time.Hour, func(int) {}); err != nil || len(plan) != 1 || plan[0].Left == "" {
				t.Errorf("from %s, with a checkpoint of %s: %+v, %v; want a range that is not rewound", from, last, plan, err)
			}
		}
	})
}

// Between the plan of a replay and its act, and before owners carry out an earlier request, a rewind to the time of
// the replay could move a lease ahead of events that were not sent.
func TestReplayMovesNoLeaseAhead(t *testing.T) {
	began := time.Now().Add(-5 * time.Hour).Truncate(time.Second)
	at := began
	feed := memfeed.New(&memfeed.Options{Now: func() time.Time { return at }})
	feed.Put(memfeed.Document{Key: "k", ID: "e1"})
	at = began.Add(2 * time.Hour)
	feed.Put(memfeed.Document{Key: "k", ID: "e2"})
	ahead := fmt.Sprintf(`"lsn":"2","changeTime":"%d"`, at.Unix())
	from := began.Add(time.Hour)
	for name, other := range map[string]func(o *changefeed.Operator) error{
		"restart":        func(o *changefeed.Operator) error { return o.Restart(t.Context()) },
		"rewind":         func(o *changefeed.Operator) error { return o.Rewind(t.Context(), changefeed.FromTime(began)) },
		"earlier replay": func(o *changefeed.Operator) error { return o.Replay(t.Context(), began) },
	} {
		o := newSharedStore(t)
		o.store.Feed, o.store.Decoder = feed, every{}
		o.Leases = changefeed.NewOperator(feed, o.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		addLease(t, o, "", "FF", "", ahead)
		plan := func() string {
			t.Helper()
			plan, err := o.PlanReplay(t.Context(), from, time.Hour, func(int) {})
			if err != nil || len(plan) != 1 {
				t.Fatal(plan, err)
			}
			return plan[0].Left
		}
		if left := plan(); left != "" {
			t.Errorf("%s: planned before it: %s", name, left)
		}
		if err := other(o.Leases); err != nil {
			t.Fatal(err)
		}
		want, err := o.Leases.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Rewind(t.Context(), from, "-FF"); err == nil || !strings.Contains(err.Error(), "has not carried out") {
			t.Errorf("%s: error of the replay that was planned before it: %v", name, err)
		}
		if left := plan(); !strings.Contains(left, "has not carried out") {
			t.Errorf("%s: planned after it with the reason %q", name, left)
		}
		if got, err := o.Leases.Leases(t.Context()); err != nil || !reflect.DeepEqual(got[0].Request, want[0].Request) {
			t.Errorf("%s: request %+v, %v, want %+v", name, got[0].Request, err, want[0].Request)
		}
	}
	// An owner has carried out the other request meanwhile. The replay itself may be repeated, as after a split.
	for properties, left := range map[string]string{
		`"since":"` + began.UTC().Format(time.RFC3339) + `"`:     "handled nothing yet",
		fmt.Sprintf(`"lsn":"1","changeTime":"%d"`, began.Unix()): "not come to that time",
		`"since":"` + from.UTC().Format(time.RFC3339) + `"`:      "",
		ahead: "",
	} {
		o := newSharedStore(t)
		addLease(t, o, "", "FF", "", strings.TrimPrefix(properties+`,"unread":"true"`, ","))
		err := o.Rewind(t.Context(), from, "-FF")
		if (err == nil) != (left == "") || err != nil && !strings.Contains(err.Error(), left) {
			t.Errorf("a lease with %s: error %v, want %q", properties, err, left)
		}
	}
}

// A range that is being split has no owner to rewind it. Its events must not look as if there were none.
func TestPlanOfAReplayNamesRangesThatAreBeingSplit(t *testing.T) {
	o := newSharedStore(t)
	feed := memfeed.New(nil)
	o.store.Feed, o.store.Decoder = feed, every{}
	feed.Put(memfeed.Document{Key: "k", ID: "e"})
	addLease(t, o, "", "FF", "", `"state":"split"`)
	addLease(t, o, "", "1F", "", `"state":"pending"`)
	plan, err := o.PlanReplay(t.Context(), time.Now().Add(-time.Hour), time.Hour, func(int) {})
	if err != nil || len(plan) != 1 || plan[0].Lease != "-FF" || plan[0].Events != 0 || !strings.Contains(plan[0].Left, "is being split") {
		t.Errorf("replay: %+v, %v; want the range that is being split, with the reason for which it is left out", plan, err)
	}
	// A restart waits for the parts.
	if plan, err = o.PlanRestart(t.Context(), time.Hour, func(int) {}); err != nil || len(plan) != 1 || plan[0].Events != 1 {
		t.Errorf("restart: %+v, %v; want the event of the range that is being split", plan, err)
	}
}

// The store may split a range before or while it is read. Its parts are read from the same position, so that each
// event counts once.
func TestPlansReadThePartsOfASplitRange(t *testing.T) {
	const old, late, unsent = 10, 2*replayPage + 10, 5 // events
	began := time.Now().Add(-5 * time.Hour).Truncate(time.Second)
	at := began
	for name, splits := range map[string]func(changefeed.ReadRequest) bool{
		"before it is read":    func(changefeed.ReadRequest) bool { return true },
		"after the first page": func(r changefeed.ReadRequest) bool { return r.Continuation != "" },
	} {
		for _, restart := range []bool{false, true} {
			var feed *memfeed.Container
			split := true // not before it has all events
			feed = memfeed.New(&memfeed.Options{Now: func() time.Time { return at }, Before: func(_ context.Context, r changefeed.ReadRequest) error {
				if !split && splits(r) {
					split = feed.Split("00")
				}
				return nil
			}})
			for n := range old + late + unsent {
				at = began
				if n >= old {
					at = began.Add(2 * time.Hour)
				}
				feed.Put(memfeed.Document{Key: fmt.Sprint("k", n), ID: "e"})
			}
			o := newSharedStore(t)
			o.store.Feed, o.store.Decoder = feed, every{}
			addLease(t, o, "", "FF", "relay", fmt.Sprintf(`"lsn":"%d","changeTime":"%d"`, old+late, at.Unix()))
			o.Leases = changefeed.NewOperator(feed, o.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
			split = false
			want := Resend{Lease: "-FF", Owner: "relay", Events: late, Oldest: began.Add(2 * time.Hour), Newest: began.Add(2 * time.Hour), Covered: late}
			plan := func() ([]Resend, error) {
				return o.PlanReplay(t.Context(), began.Add(time.Hour), 4*time.Hour, func(int) {})
			}
			if restart {
				want.Events, want.Oldest, want.Covered = old+late+unsent, began, late+unsent
				plan = func() ([]Resend, error) { return o.PlanRestart(t.Context(), 4*time.Hour, func(int) {}) }
			}
			got, err := plan()
			if err != nil || !split || !reflect.DeepEqual(got, []Resend{want}) {
				t.Errorf("split %s, restart %t: %+v, %v, want %+v", name, restart, got, err, want)
			}
		}
	}
}

// withoutBeginning is a feed that can be read from positions only.
type withoutBeginning struct{ changefeed.Feed }

// Read implements changefeed.Feed.
func (w withoutBeginning) Read(ctx context.Context, r changefeed.ReadRequest) (*changefeed.Page, error) {
	if r.Continuation == "" {
		return nil, errors.New("no beginning")
	}
	return w.Feed.Read(ctx, r)
}

// A lease that was moved to the beginning of the feed of all versions would stop its range.
func TestFeedWithoutABeginningIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := newRelayed(t, memfeed.New(nil))
		o.cfg.Feed = config.FeedVersions
		o.store.Feed = withoutBeginning{o.store.Feed}
		if err := o.readFeed(t.Context()); err != nil {
			t.Errorf("the doctor cannot read the feed: %v", err)
		}
		_, err1 := o.PlanReplay(t.Context(), time.Now(), time.Hour, func(int) {})
		_, err2 := o.PlanRestart(t.Context(), time.Hour, func(int) {})
		for _, err := range []error{err1, err2} {
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "rewind --to now") {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestConditionOfRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	owned := changefeed.Lease{Owner: "host", State: changefeed.LeaseLive, Expiry: time.Minute}
	requested := owned
	requested.Request.Paused = true
	in := func(h changefeed.Health, failing time.Time) changefeed.Lease {
		l := owned
		l.Health, l.Failing = h, failing
		return l
	}
	minute := now.Add(-time.Minute)
	withheld := changefeed.RangeLag{Lease: owned, Known: true, Withheld: 2, Age: time.Hour}
	for name, c := range map[string]struct {
		r     Range
		want  Condition
		lasts time.Duration
	}{
		"owned":                       {Range{Lease: owned}, Healthy, 0},
		"no owner":                    {Range{Lease: changefeed.Lease{State: changefeed.LeaseLive}}, Free, 0},
		"split, not completed":        {Range{Lease: changefeed.Lease{State: changefeed.LeaseSplit}}, Free, 0},
		"part of a split":             {Range{Lease: changefeed.Lease{State: changefeed.LeasePending}}, Healthy, 0},
		"paused":                      {Range{Lease: requested}, Paused, 0},
		"all paused":                  {Range{Lease: owned, Paused: true}, Paused, 0},
		"stopped, all paused":         {Range{Lease: in(changefeed.Stopped, minute), Paused: true}, Stopped, time.Minute},
		"stopped at an unknown time":  {Range{Lease: in(changefeed.Stopped, time.Time{})}, Stopped, 0},
		"not read":                    {Range{Lease: in(changefeed.Unread, minute)}, Unread, time.Minute},
		"retrying, all paused":        {Range{Lease: in(changefeed.Retrying, minute), Paused: true}, Retrying, time.Minute},
		"held":                        {Range{Lease: owned, Lag: withheld}, Held, time.Hour},
		"held, paused":                {Range{Lease: requested, Lag: withheld}, Paused, 0},
		"silent, all paused, stopped": {Range{Lease: in(changefeed.Stopped, minute), Paused: true, Silent: time.Second}, Silent, time.Second},
		"silent until its expiry":     {Range{Lease: owned, Silent: time.Minute}, Silent, time.Minute},
		"silent beyond its expiry":    {Range{Lease: owned, Silent: 2 * time.Minute}, Expired, 2 * time.Minute},
	} {
		if got, lasted := c.r.Condition(now); got != c.want || lasted != c.lasts {
			t.Errorf("%s: %s for %s, want %s for %s", name, got, lasted, c.want, c.lasts)
		}
	}
}

// All changes before the oldest one that waits were handled, and none after the measurement of any range.
func TestHandledIsBeforeTheOldestChangeOfAllRanges(t *testing.T) {
	at := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	for name, c := range map[string]struct {
		lags []changefeed.RangeLag
		want time.Time
	}{
		"nothing waits":                         {[]changefeed.RangeLag{{}, {}}, at},
		"one range waits":                       {[]changefeed.RangeLag{{Oldest: ago(time.Minute)}, {}}, ago(time.Minute)},
		"both wait, the first for longer":       {[]changefeed.RangeLag{{Oldest: ago(time.Hour)}, {Oldest: ago(time.Minute)}}, ago(time.Hour)},
		"both wait, the second for longer":      {[]changefeed.RangeLag{{Oldest: ago(time.Minute)}, {Oldest: ago(time.Hour)}}, ago(time.Hour)},
		"a change during the measurement":       {[]changefeed.RangeLag{{Oldest: ago(-time.Second)}}, at},
		"a relay read earlier":                  {[]changefeed.RangeLag{{Read: ago(time.Second)}, {Read: ago(5 * time.Second)}}, ago(5 * time.Second)},
		"a relay read after the measurement":    {[]changefeed.RangeLag{{Read: ago(-time.Second)}}, at},
		"a relay read before, another one lags": {[]changefeed.RangeLag{{Read: ago(time.Minute)}, {Oldest: ago(time.Second)}}, ago(time.Minute)},
	} {
		s := Snapshot{At: at}
		for _, lag := range c.lags {
			s.Ranges = append(s.Ranges, Range{Lag: lag})
		}
		if got := s.Handled(); !got.Equal(c.want) {
			t.Errorf("%s: all before %s was handled, want %s", name, got, c.want)
		}
	}
}

// Nothing is known of the events of a range that no lease covers, for example after its damaged lease was
// omitted.
func TestNothingIsProvedOfARangeWithoutALease(t *testing.T) {
	o := &Operator{cfg: &config.Relay{EventTTL: time.Hour}}
	read := changefeed.RangeLag{Known: true}
	left := changefeed.Lease{ID: "left", State: changefeed.LeaseLive, Range: changefeed.FeedRange{Min: "", Max: "1F"}}
	right := changefeed.Lease{ID: "right", State: changefeed.LeaseLive, Range: changefeed.FeedRange{Min: "1F", Max: "FF"}}
	lags := map[string]changefeed.RangeLag{"left": read, "right": read}
	if s := o.NewSnapshot(time.Now(), []changefeed.Lease{left, right}, false, lags); s.Handled().IsZero() {
		t.Error("two ranges that cover everything and have no lag: nothing counts as handled")
	}
	s := o.NewSnapshot(time.Now(), []changefeed.Lease{left}, false, lags)
	if handled := s.Handled(); !handled.IsZero() {
		t.Errorf("no lease covers 1F-FF, and all before %s counts as handled", handled)
	}
	if !slices.Equal(s.Uncovered, []string{"1F-FF"}) {
		t.Errorf("uncovered are %v, want 1F-FF", s.Uncovered)
	}
}

// If all relays end in the middle of a split, nobody reads the range, and nothing measures its lag.
func TestLagOfASplitThatIsNotCompletedIsUnknown(t *testing.T) {
	o := &Operator{cfg: &config.Relay{EventTTL: time.Hour}}
	parent := changefeed.Lease{ID: "parent", State: changefeed.LeaseSplit, Range: changefeed.FullRange()}
	child := changefeed.Lease{ID: "child", State: changefeed.LeasePending, Range: changefeed.FeedRange{Min: "", Max: "1F"}}
	if s := o.NewSnapshot(time.Now(), []changefeed.Lease{parent, child}, false, nil); s.Unknown != 1 {
		t.Errorf("the lag of %d ranges is unknown, want that of the range that is split", s.Unknown)
	}
}

// A replay or a restart that omits a part of the keys must not look as if that had no events.
func TestPlansNameThePartsThatNoRequestReaches(t *testing.T) {
	o := newSharedStore(t)
	addLease(t, o, "", "1F", "", "")
	addLease(t, o, "2F", "FF", "", `"state":"pending"`) // of a first start that did not end
	for name, plan := range map[string]func() ([]Resend, error){
		"replay": func() ([]Resend, error) {
			return o.PlanReplay(t.Context(), time.Now().Add(-time.Hour), time.Hour, func(int) {})
		},
		"restart": func() ([]Resend, error) { return o.PlanRestart(t.Context(), time.Hour, func(int) {}) },
	} {
		found, err := plan()
		left := map[string]string{}
		for _, r := range found {
			left[r.Lease] = r.Left
		}
		if err != nil || len(found) != 3 || !strings.Contains(left["1F-2F"], "no lease") || !strings.Contains(left["2F-FF"], "not live") {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	if found, err := o.PlanRestart(t.Context(), time.Hour, func(int) {}, "feedboxmemory_db_coll..-1F"); err != nil || len(found) != 1 {
		t.Errorf("restart of one lease: %+v, %v", found, err)
	}
}

// If the first relay ends while it creates the leases, nobody reads their ranges.
func TestNothingIsProvedOfAFirstStartThatDidNotEnd(t *testing.T) {
	o := &Operator{cfg: &config.Relay{EventTTL: time.Hour}}
	left := changefeed.Lease{ID: "left", State: changefeed.LeasePending, Range: changefeed.FeedRange{Min: "", Max: "1F"}}
	right := changefeed.Lease{ID: "right", State: changefeed.LeasePending, Range: changefeed.FeedRange{Min: "1F", Max: "FF"}}
	s := o.NewSnapshot(time.Now(), []changefeed.Lease{left, right}, false, nil)
	if handled := s.Handled(); s.Unknown != 2 || !handled.IsZero() {
		t.Errorf("the lag of %d ranges is unknown, want 2, and all before %s counts as handled", s.Unknown, handled)
	}
}

// Before the first relay there are no leases, so nothing proves that an event was sent.
func TestWithoutLeasesNothingWasHandled(t *testing.T) {
	if handled := (Snapshot{At: time.Now()}).Handled(); !handled.IsZero() {
		t.Errorf("all before %s counts as handled", handled)
	}
}
