package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
)

// keep stores lease records of the world's container, and the info record.
func (w *world) keep(bodies ...string) {
	w.t.Helper()
	const prefix = "changefeedmemory_db_coll"
	create(w.t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
	for _, body := range bodies {
		token, rest, _ := strings.Cut(body, " ")
		lo, hi, _ := strings.Cut(token, "-")
		id := prefix + ".." + token
		create(w.t, w, id, fmt.Sprintf(`{"id":%q,"version":1,"LeaseToken":%q,"FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":null,%s}`,
			id, token, lo, hi, rest))
	}
}

// failingSource is a feed whose container cannot be identified and whose end is unknown.
type failingSource struct {
	changefeed.Feed
	source, now error
}

func (f failingSource) Source(ctx context.Context) (changefeed.Source, error) {
	if f.source != nil {
		return changefeed.Source{}, f.source
	}
	return f.Feed.Source(ctx)
}

func (f failingSource) Now(context.Context, changefeed.FeedRange) (string, error) { return "", f.now }

func TestOperatorReturnsTheCauseOfFailure(t *testing.T) {
	calls := map[string]struct {
		call  func(ctx context.Context, o *changefeed.Operator) error
		needs []memstore.Kind
	}{
		"Leases": {func(ctx context.Context, o *changefeed.Operator) error { _, err := o.Leases(ctx); return err }, []memstore.Kind{memstore.List}},
		"Export": {func(ctx context.Context, o *changefeed.Operator) error { _, err := o.Export(ctx); return err }, []memstore.Kind{memstore.List}},
		"Lag":    {func(ctx context.Context, o *changefeed.Operator) error { _, err := o.Lag(ctx); return err }, []memstore.Kind{memstore.List}},
		"Hosts":  {func(ctx context.Context, o *changefeed.Operator) error { _, err := o.Hosts(ctx); return err }, []memstore.Kind{memstore.List}},
		"Pause":  {func(ctx context.Context, o *changefeed.Operator) error { return o.Pause(ctx) }, []memstore.Kind{memstore.Create}},
		"Resume": {func(ctx context.Context, o *changefeed.Operator) error { return o.Resume(ctx) }, []memstore.Kind{memstore.Read, memstore.Delete}},
		"Paused": {func(ctx context.Context, o *changefeed.Operator) error {
			paused, err := o.Paused(ctx)
			if paused && err != nil {
				return errors.New("it is paused, and that is not known")
			}
			return err
		}, []memstore.Kind{memstore.Read}},
		"Release": {func(ctx context.Context, o *changefeed.Operator) error { return o.Release(ctx) }, []memstore.Kind{memstore.List, memstore.Replace}},
		"Rewind": {func(ctx context.Context, o *changefeed.Operator) error {
			return o.Rewind(ctx, changefeed.FromBeginning())
		}, []memstore.Kind{memstore.List, memstore.Replace}},
	}
	for name, c := range calls {
		for _, kind := range c.needs {
			w := newWorld(t, 1)
			broken := fmt.Errorf("%s: %w", kind, errCut)
			on := false
			w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
				if on && op.Kind == kind {
					return broken
				}
				return nil
			}})
			w.keep(`-FF "properties":{}`)
			op := w.operator()
			if kind == memstore.Delete { // there must be something to delete
				if err := op.Pause(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			on = true
			if err := c.call(t.Context(), op); !errors.Is(err, broken) {
				t.Errorf("%s when the store fails to %s: error %v", name, kind, err)
			}
			on = false
			if err := c.call(t.Context(), changefeed.NewOperator(failingSource{Feed: w.feed, source: broken}, w.store, nil)); !errors.Is(err, broken) {
				t.Errorf("%s of an unknown container: error %v", name, err)
			}
			if err := c.call(t.Context(), op); err != nil {
				t.Errorf("%s when all is well again: error %v", name, err)
			}
		}
	}
}

// Nothing is requested from the owner.
func TestRewindToInvalidPositionIsRefused(t *testing.T) {
	w := newWorld(t, 1)
	w.keep(`-FF "ContinuationToken":"\"5\"","properties":{}`)
	low, high := changefeed.FeedRange{Max: "20"}, changefeed.FeedRange{Min: "20", Max: "FF"}
	for name, tt := range map[string]struct {
		to   changefeed.Start
		want string
	}{
		"no time":         {changefeed.FromTime(time.Time{}), "FromTime needs a time"},
		"no tokens":       {changefeed.FromTokens(), "at least one token"},
		"a wrong token":   {changefeed.FromTokens(changefeed.RangeToken{Range: changefeed.FeedRange{Min: "x", Max: "FF"}}), "hexadecimal"},
		"half of tokens":  {changefeed.FromTokens(changefeed.RangeToken{Range: low}), "do not cover"},
		"two tokens":      {changefeed.FromTokens(changefeed.RangeToken{Range: low}, changefeed.RangeToken{Range: high}), "2 of the given tokens"},
		"now, failing":    {changefeed.FromNow(), errCut.Error()},
		"now, of nothing": {changefeed.FromNow(), "no continuation"},
	} {
		feed := failingSource{Feed: w.feed}
		if name == "now, failing" {
			feed.now = errCut
		}
		err := changefeed.NewOperator(feed, w.store, nil).Rewind(t.Context(), tt.to)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tt.want)
		}
		if l := w.leases()[0]; l.Request.Rewind != nil {
			t.Errorf("%s: the owner is asked for %+v", name, l.Request.Rewind)
		}
	}
}

// An unreadable lease is reported beside the readable ones, and prevents changes of all. A
// split lease has no position; a request for it is an error, because no host completes the
// split here.
func TestUnreadableAndSplitLeasesAreReported(t *testing.T) {
	synctest.Test(t, unreadableAndSplitLeases)
}

func unreadableAndSplitLeases(t *testing.T) {
	w := newWorld(t, 1)
	w.keep(`-20 "ContinuationToken":"\"5\"","properties":{}`, `20-FF "ContinuationToken":"\"7\"","properties":{"state":"split"}`)
	op := w.operator()
	want := []changefeed.RangeToken{{Range: changefeed.FeedRange{Max: "20"}, Continuation: `"5"`}}
	if tokens, err := op.Export(t.Context()); err != nil || !reflect.DeepEqual(tokens, want) {
		t.Errorf("exported %+v, %v; want %+v", tokens, err, want)
	}
	if err := op.PauseLeases(t.Context()); err == nil || !strings.Contains(err.Error(), "lease 20-FF: it is being split") {
		t.Errorf("pause: error %v", err)
	}
	if l := w.leases(); len(l) != 2 || !l[0].Request.Paused || l[1].Request.Paused || l[1].State != changefeed.LeaseSplit {
		t.Errorf("the leases are %+v, want the live one paused", l)
	}
	const bad = "changefeedmemory_db_coll..0"
	create(t, w, bad, fmt.Sprintf(`{"id":%q,"LeaseToken":"0"}`, bad))
	leases, err := op.Leases(t.Context())
	refused, ok := errors.AsType[*changefeed.RefusedError](err)
	if !ok || len(refused.Leases) != 1 || refused.Leases[0].ID != bad || !strings.Contains(refused.Leases[0].Reason, "FeedRange") || len(leases) != 2 {
		t.Errorf("%d leases, error %v; want two, and the third refused", len(leases), err)
	}
	for what, err := range map[string]error{
		"resume": op.ResumeLeases(t.Context()), "export": func() error { _, err := op.Export(t.Context()); return err }(),
	} {
		if !errors.As(err, &refused) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if leases, _ := op.Leases(t.Context()); !leases[0].Request.Paused {
		t.Error("the pause was ended all the same")
	}
}

// hidingStore is a lease store whose first listings lack a record, like that of a delayed replica.
type hidingStore struct {
	changefeed.LeaseStore
	id       string
	listings int
}

func (s *hidingStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	records, err := s.LeaseStore.List(ctx, prefix)
	if s.listings--; s.listings >= 0 {
		records = slices.DeleteFunc(records, func(r changefeed.Record) bool { return r.ID == s.id })
	}
	return records, err
}

// The parts of a split are in other partitions than their parent, so a listing may have the parent of before the split
// or of after it, and only some parts. A request must not succeed without an effect on the others.
func TestRequestReachesAPartThatAListingLacks(t *testing.T) {
	for _, named := range [][]string{nil, {"-FF"}} {
		for _, state := range []string{"split", "done"} {
			for _, listings := range []int{0, 1, 3, 1000} {
				if named != nil && state == "done" {
					continue // a lease that was split has no name
				}
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					w.keep(`-FF "properties":{"state":"`+state+`"}`, `-20 "properties":{}`, `20-FF "properties":{}`)
					store := &hidingStore{LeaseStore: w.store, id: "changefeedmemory_db_coll..20-FF", listings: listings}
					if state == "split" { // a host completes it after the first listing
						time.AfterFunc(50*time.Millisecond, func() {
							r, err := w.store.Read(t.Context(), "changefeedmemory_db_coll..-FF")
							if err = errors.Join(err, w.store.Delete(t.Context(), r.ID, r.ETag)); err != nil {
								t.Error(err)
							}
						})
					}
					err := changefeed.NewOperator(w.feed, store, nil).PauseLeases(t.Context(), named...)
					paused := 0
					for _, l := range w.leases() {
						if l.Request.Paused {
							paused++
						}
					}
					if listings == 1000 && (err == nil || !strings.Contains(err.Error(), "20-FF")) || listings < 1000 && (err != nil || paused != 2) {
						t.Errorf("named %v, parent %s, %d listings without a part: error %v, %d leases are paused", named, state, listings, err, paused)
					}
				})
			}
		}
	}
}

// racingStore is a lease store in which another writer is faster, once.
type racingStore struct {
	changefeed.LeaseStore
	replace, remove func(ctx context.Context, id string)
}

func (m *racingStore) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	if do := m.replace; do != nil {
		m.replace = nil
		do(ctx, r.ID)
	}
	return m.LeaseStore.Replace(ctx, r)
}

func (m *racingStore) Delete(ctx context.Context, id, etag string) error {
	if do := m.remove; do != nil {
		m.remove = nil
		do(ctx, id)
	}
	return m.LeaseStore.Delete(ctx, id, etag)
}

// The owner writes between the operator's read and write. If that record cannot be read,
// nothing is stored.
func TestRequestKeepsTheOwnersConcurrentWrite(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		w := newWorld(t, 1)
		written := false
		w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
			if hidden && written && op.Kind == memstore.Read {
				return errCut
			}
			return nil
		}})
		w.keep(`-FF "ContinuationToken":"\"5\"","properties":{}`)
		store := &racingStore{LeaseStore: w.store, replace: func(ctx context.Context, id string) {
			r, err := w.store.Read(ctx, id)
			r.Body = []byte(strings.Replace(string(r.Body), `\"5\"`, `\"9\"`, 1))
			if _, failed := w.store.Replace(ctx, r); err != nil || failed != nil {
				t.Error(err, failed)
			}
			written = true
		}}
		err := changefeed.NewOperator(w.feed, store, nil).PauseLeases(t.Context())
		if hidden != errors.Is(err, errCut) || !hidden && err != nil {
			t.Errorf("hidden %t: error %v", hidden, err)
		}
		if l := w.leases()[0]; l.Request.Paused == hidden || l.Continuation != `"9"` {
			t.Errorf("hidden %t: the lease is %+v", hidden, l)
		}
	}
}

// laggingStore does not return a record before it was asked for it several times, like a replica.
type laggingStore struct {
	changefeed.LeaseStore
	id    string
	reads int // that find nothing
}

func (s *laggingStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	if id == s.id && s.reads > 0 {
		s.reads--
		return changefeed.Record{}, changefeed.ErrNotFound
	}
	return s.LeaseStore.Read(ctx, id)
}

// A replica that does not have a pause yet must not let Resume succeed without an effect: all hosts would stay
// paused.
func TestResumeEndsAPauseThatAReplicaDoesNotHaveYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start("a", nil, nil)
		eventually(t, time.Minute, "started", func() bool { return w.owners()["a"] == 1 })
		store := &laggingStore{LeaseStore: w.store, id: "changefeedmemory_db_coll.pause"}
		op := changefeed.NewOperator(w.feed, store, nil)
		if err := op.Resume(t.Context()); err != nil {
			t.Errorf("without a pause: %v", err)
		}
		for _, reads := range []int{0, 1, 5, 1000} {
			if err := w.operator().Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			store.reads = reads
			err := op.Resume(t.Context())
			paused, pausedErr := w.operator().Paused(t.Context())
			if pausedErr != nil || paused != (err != nil) || paused != (reads == 1000) {
				t.Errorf("a replica that finds nothing %d times: error %v, paused %t (%v)", reads, err, paused, pausedErr)
			}
		}
	})
}

// Paused is correct even if another operator pauses or resumes at the same time.
func TestPausedFollowsTheRecord(t *testing.T) {
	w := newWorld(t, 1)
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	options := &changefeed.OperatorOptions{Now: func() time.Time { return at }}
	store := &racingStore{LeaseStore: w.store}
	op := changefeed.NewOperator(w.feed, store, options)
	expect := func(when string, want bool) {
		t.Helper()
		if paused, err := op.Paused(t.Context()); err != nil || paused != want {
			t.Errorf("%s: paused %t, error %v", when, paused, err)
		}
	}
	expect("at first", false)
	if err := op.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("then", true)
	const id = "changefeedmemory_db_coll.pause"
	want := fmt.Sprintf(`{"id":%q,"timestamp":"2026-05-04T03:02:01.0000000Z"}`, id)
	if r, err := w.store.Read(t.Context(), id); err != nil || string(r.Body) != want {
		t.Errorf("the record is %s, error %v; want %s", r.Body, err, want)
	}
	again := func(ctx context.Context, id string) {
		r, err := w.store.Read(ctx, id)
		err = errors.Join(err, w.store.Delete(ctx, id, r.ETag), changefeed.NewOperator(w.feed, w.store, options).Pause(ctx))
		if err != nil {
			t.Error(err)
		}
	}
	store.remove = again
	if err := op.Resume(t.Context()); err != nil {
		t.Error(err)
	}
	expect("after a resume during another pause", false)
	if err := op.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.remove = func(ctx context.Context, _ string) {
		if err := changefeed.NewOperator(w.feed, w.store, options).Resume(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := op.Resume(t.Context()); err != nil {
		t.Errorf("another operator resumed meanwhile: %v", err)
	}
	expect("at last", false)
}

func TestUnknownLeaseNameFailsTheWholeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		if err := w.operator().PauseLeases(t.Context(), w.leases()[0].Token, "no such lease"); err == nil {
			t.Error("of two leases named one does not exist, and that is no error")
		}
		if w.leases()[0].Request.Paused {
			t.Error("the other was paused")
		}
	})
}
