package changefeed

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	got, err := (*Options)(nil).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Observer == nil || got.Observer.LeaseAcquired == nil || got.Logger != slog.Default() {
		t.Error("there is neither an observer nor a log")
	}
	if d := time.Since(got.Now()); d < 0 || d > time.Minute || got.Clock != Clock(systemClock{}) {
		t.Errorf("the wall clock is off by %s, the other is %T", d, got.Clock)
	}
	got.Observer, got.Logger, got.Now, got.Clock = nil, nil, nil, nil
	want := Options{
		Processor: "changefeed", Scope: []FeedRange{FullRange()},
		Expiry: 20 * time.Second, Renew: 8 * time.Second, Acquire: 5 * time.Second, AcquireFast: 500 * time.Millisecond,
		MaxItems: 100, PollMin: 500 * time.Millisecond, PollBusy: 500 * time.Millisecond, PollMax: 20 * time.Second, PollRate: 1000,
		ReadTimeout: 30 * time.Second, Lanes: 1, ReadAheadItems: 1000, ReadAheadBytes: 8 << 20, HandlerTimeout: 5 * time.Minute, CheckpointEvery: time.Second,
		RetryMin: 100 * time.Millisecond, RetryMax: 30 * time.Second, MaxAttempts: 5, Poison: PoisonStop,
		StuckAfter: time.Minute, DrainTimeout: 10 * time.Second,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are\n%+v, want\n%+v", got, want)
	}
}

func TestDefaultsDependOnGivenOptions(t *testing.T) {
	letter := func(context.Context, DeadLetter) error { return nil }
	said := Options{
		Processor: "p", Host: "h", Expiry: time.Minute, Renew: time.Second, Acquire: 100 * time.Millisecond, MaxItems: 300,
		PollMin: time.Minute, RetryMin: time.Hour, Lanes: 4, HandlerTimeout: -1, CheckpointEvery: -1, MaxAttempts: -1,
		DrainTimeout: -1, StuckAfter: time.Second, DeadLetter: letter, Observer: &Observer{}, Scope: []FeedRange{rng("", "20")},
	}
	got, err := said.resolve(nil)
	if err != nil || got.Observer != said.Observer || got.Logger != nil || got.DeadLetter == nil {
		t.Fatalf("%+v, error %v", got, err)
	}
	want := said
	want.AcquireFast, want.PollBusy, want.PollMax, want.RetryMax = 100*time.Millisecond, time.Minute, time.Minute, time.Hour
	want.PollRate, want.ReadAheadItems, want.ReadAheadBytes, want.ReadTimeout, want.Poison = 1000, 3000, 8<<20, 30*time.Second, PoisonDeadLetter
	got.DeadLetter, got.Now, got.Clock, want.DeadLetter = nil, nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("resolved are\n%+v, want\n%+v", got, want)
	}
	logger := slog.New(slog.DiscardHandler)
	if got, err := (&Options{Logger: logger}).resolve(nil); err != nil || got.Logger != logger || got.Observer.LeaseAcquired == nil {
		t.Errorf("of a logger alone: error %v, or it is another", err)
	}
	said.MaxItems, said.Logger = -1, logger
	if got, err := said.resolve(nil); err != nil || got.ReadAheadItems != 1000 || got.Observer.LeaseAcquired == nil {
		t.Errorf("of pages without a bound %d items are read ahead, error %v", got.ReadAheadItems, err)
	}
}

func TestAllOptionFaultsAreReported(t *testing.T) {
	letter := func(context.Context, DeadLetter) error { return nil }
	all, lines := Options{}, 0
	for name, tt := range map[string]struct {
		set  func(o *Options)
		want string // "" if it is none
	}{
		"a dot":                 {func(o *Options) { o.Processor = "a.b" }, `Processor "a.b" must not contain a dot`},
		"a dot in a host":       {func(o *Options) { o.Host = "a.b" }, ""},
		"a slash in a host":     {func(o *Options) { o.Host = "a/b" }, `Host "a/b" must not contain a slash`},
		"a slash":               {func(o *Options) { o.Processor = "a/b" }, "must not contain a slash"},
		"a slash in an account": {func(o *Options) { o.LeasePrefixHost = "a/b" }, "must not contain a slash"},
		"a question mark":       {func(o *Options) { o.Host = "a?" }, "record ids cannot"},
		"a backslash":           {func(o *Options) { o.Processor = `a\` }, "record ids cannot"},
		"a hash":                {func(o *Options) { o.LeasePrefixHost = "a#" }, "record ids cannot"},
		"no expiry":             {func(o *Options) { o.Expiry, o.Renew, o.Acquire, o.AcquireFast = -1, 1, 1, 1 }, "Expiry -1ns must be positive"},
		"no renewals":           {func(o *Options) { o.Renew = -1 }, "Renew -1ns must leave time"},
		"late renewals":         {func(o *Options) { o.Renew = 15 * time.Second }, "Renew 15s must leave time for a retry within nine tenths of Expiry, 18s"},
		"renewals in time":      {func(o *Options) { o.Renew = 15*time.Second - 1 }, ""},
		"no cycles":             {func(o *Options) { o.Acquire, o.AcquireFast = -1, -1 }, "AcquireFast -1ns must be positive"},
		"no fast cycles":        {func(o *Options) { o.AcquireFast = -1 }, "AcquireFast -1ns must be positive"},
		"slow fast cycles":      {func(o *Options) { o.AcquireFast = 6 * time.Second }, "at most Acquire 5s"},
		"no pauses":             {func(o *Options) { o.PollMin, o.PollBusy = -1, -1 }, "PollMin -1ns must be positive"},
		"no reads":              {func(o *Options) { o.PollRate = -1 }, "PollRate -1"},
		"short long pauses":     {func(o *Options) { o.PollMax = time.Millisecond }, "at most PollMax 1ms"},
		"no busy pauses":        {func(o *Options) { o.PollBusy = -1 }, "PollBusy -1ns must be positive"},
		"long busy pauses":      {func(o *Options) { o.PollBusy = time.Second }, "PollBusy 1s must be positive and at most PollMin 500ms"},
		"no lanes":              {func(o *Options) { o.Lanes = -1 }, "Lanes -1 must be at least 1"},
		"no items":              {func(o *Options) { o.ReadAheadItems = -1 }, "ReadAheadItems and ReadAheadBytes must be positive"},
		"no bytes":              {func(o *Options) { o.ReadAheadBytes = -1 }, "ReadAheadItems and ReadAheadBytes must be positive"},
		"no retries":            {func(o *Options) { o.RetryMin = -1 }, "RetryMin -1ns must be positive"},
		"short long retries":    {func(o *Options) { o.RetryMax = time.Millisecond }, "at most RetryMax 1ms"},
		"no sink":               {func(o *Options) { o.Poison = PoisonDeadLetter }, "there is no DeadLetter"},
		"a negative limit":      {func(o *Options) { o.WaitLimit = -1 }, "WaitLimit -1ns must not be negative"},
		"a limit, and no sink":  {func(o *Options) { o.WaitLimit = 1 }, "WaitLimit 1ns without DeadLetter"},
		"a limit":               {func(o *Options) { o.WaitLimit, o.DeadLetter = 1, letter }, ""},
		"an unknown policy":     {func(o *Options) { o.Poison = "none" }, `Poison "none" is unknown`},
		"skipping":              {func(o *Options) { o.Poison = PoisonSkip }, ""},
		"bounds":                {func(o *Options) { o.Scope = []FeedRange{rng("1f", "20")} }, `Scope: feed range 1f-20: bound "1f" is not upper-case hexadecimal`},
		"an empty range":        {func(o *Options) { o.Scope = []FeedRange{rng("20", "20")} }, "the minimum must lie below the maximum"},
		"beyond all keys":       {func(o *Options) { o.Scope = []FeedRange{rng("20", "FF01")} }, "the maximum must not lie above FF"},
		"overlapping ranges":    {func(o *Options) { o.Scope = []FeedRange{rng("", "20"), rng("10", "30")} }, "Scope: 10-30 overlaps -20"},
		"two ranges":            {func(o *Options) { o.Scope = []FeedRange{rng("", "20"), rng("20", "30")} }, ""},
		"a start without time":  {func(o *Options) { o.Start = FromTime(time.Time{}) }, "options: start: FromTime needs a time"},
		"a start without token": {func(o *Options) { o.Start = FromTokens() }, "options: start: FromTokens needs at least one token"},
		"a wrong token":         {func(o *Options) { o.Start = FromTokens(RangeToken{Range: rng("20", "")}) }, "options: start: feed range 20-: the minimum"},
	} {
		var o Options
		tt.set(&o)
		_, err := o.resolve(nil)
		alone := o.Expiry >= 0 && o.PollMin >= 0 // others follow from these
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || alone && strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: error %v, want just %q", name, err, tt.want)
		}
		if name == "no lanes" || name == "no items" || name == "overlapping ranges" {
			tt.set(&all)
			lines++
		}
	}
	if _, err := all.resolve(nil); err == nil || strings.Count(err.Error(), "options:") != lines {
		t.Errorf("%d faults are reported: %v", lines, err)
	}
	manual := Manual(func(context.Context, *Batch, Checkpoint) error { return nil })
	for lanes, fault := range map[int]bool{1: false, 2: true} {
		if _, err := (&Options{Lanes: lanes}).resolve(manual); (err != nil) != fault {
			t.Errorf("%d lanes with a manual handler: error %v", lanes, err)
		}
	}
}

// Host defaults to the machine's host name.
func TestNewRequiresFeedStoreAndHandler(t *testing.T) {
	feed, store, handler := &physical{}, &mapStore{}, HandlerFunc(func(context.Context, *Batch) error { return nil })
	for name, err := range map[string]error{
		"a feed":    func() error { _, err := New(nil, store, handler, nil); return err }(),
		"a store":   func() error { _, err := New(feed, nil, handler, nil); return err }(),
		"a handler": func() error { _, err := New(feed, store, nil, nil); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "required") {
			t.Errorf("without %s: error %v", name, err)
		}
	}
	if _, err := New(feed, store, handler, &Options{Lanes: -1}); err == nil || !strings.Contains(err.Error(), "Lanes") {
		t.Errorf("of wrong options: error %v", err)
	}
	p, err := New(feed, store, handler, nil)
	if err != nil || p.env.opts.Host == "" {
		t.Fatalf("host %q, error %v", p.env.opts.Host, err)
	}
	if err := p.Own(t.Context(), "k", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("of a feed that does not place keys: error %v", err)
	}
}

// placed is a feed that places each key at itself, or fails.
type placed struct {
	Feed
	err error
}

func (f placed) Place(key string) (string, error) { return key, f.err }

// If a parent reappeared beside its children, the children are the right leases.
func TestNarrowestLeaseOwnsAKey(t *testing.T) {
	_, e := newFaultyStore(t)
	e.feed = placed{}
	p := &Processor{env: *e, placer: placed{}}
	own := func(key string) error { return p.Own(t.Context(), key, func(context.Context) error { return nil }) }
	p.placer = placed{err: errTest}
	if err := own("05"); !errors.Is(err, ErrNotOwned) {
		t.Errorf("not running: error %v", err)
	}
	for range 20 { // in any order
		r := newRun(e)
		p.running.Store(r)
		narrow := r.works(t, e.leaseOf(rng("10", "20")))
		r.works(t, e.leaseOf(rng("", "20")))
		r.works(t, e.leaseOf(rng("20", "30")))
		narrow.calls.accept(true)
		p.placer = placed{}
		for key, want := range map[string]error{"15": nil, "05": ErrNotOwned, "25": ErrNotOwned, "35": ErrNotOwned} {
			if err := own(key); !errors.Is(err, want) {
				t.Fatalf("key %s: error %v, want %v", key, err, want)
			}
		}
		p.placer = placed{err: errTest}
		if err := own("15"); !errors.Is(err, errTest) {
			t.Fatalf("a key without a place: error %v", err)
		}
	}
}
