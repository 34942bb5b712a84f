package changefeed

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// halves is a feed whose range has split; the changes of its parts are of different ages.
type halves struct{ Feed }

func (halves) Read(_ context.Context, req ReadRequest) (*Page, error) {
	children := []FeedRange{rng("", "55"), rng("55", "AA"), rng("AA", "FF")}
	for i, child := range children {
		if req.Range.Equal(child) {
			return &Page{Items: []Item{{LSN: 5, Timestamp: []int64{500, 100, 300}[i]}}, EndLSN: 6}, nil
		}
	}
	return nil, &SplitError{Range: req.Range, Children: children}
}

// The age of a range that split is that of its oldest change, in whichever part.
func TestTheLagOfASplitRangeIsThatOfItsOldestPart(t *testing.T) {
	o := &Operator{feed: halves{}, opts: OperatorOptions{Now: func() time.Time { return time.Unix(1000, 0) }}}
	var lag RangeLag
	if err := o.measure(t.Context(), RangeToken{Range: FullRange()}, &lag); err != nil || lag.Age != 900*time.Second || lag.Transactions != 6 {
		t.Errorf("%+v, %v; want 900 s and 6 transactions", lag, err)
	}
}

// What the service told of its end stays known if a reply does not tell it.
func TestTheEndOfAFeedIsRemembered(t *testing.T) {
	var s lagState
	s.read(&Page{EndLSN: 10, Items: []Item{{LSN: 4, Timestamp: 40}}})
	s.read(&Page{Items: []Item{{LSN: 6, Timestamp: 60}}})
	if s.endLSN != 10 || s.readLSN != 6 || s.lastTS != 60 {
		t.Errorf("%+v, want the end 10, read up to 6", s)
	}
}

// What another product's processor has processed is in its position alone: our numbers of
// an earlier checkpoint say nothing of it.
func TestAForeignLeaseHasNoNumbersOfOurs(t *testing.T) {
	l := Lease{ID: "p..-FF", Version: 1, Range: FullRange(), Owner: "a", Incarnation: "i", Epoch: 3, Expiry: time.Second, Continuation: `"5"`, LSN: 5, ChangeTime: 6, Timestamp: time.Unix(1, 0)}
	var doc map[string]any
	if err := json.Unmarshal(l.encode().Body, &doc); err != nil {
		t.Fatal(err)
	}
	doc["Owner"], doc["ContinuationToken"] = "dotnet", `"900"`
	got, err := decodeLease(Record{ID: l.ID, Body: mustMarshal(doc)})
	if err != nil || got.Continuation != `"900"` || got.LSN != 0 || got.ChangeTime != 0 || got.Expiry != 0 {
		t.Errorf("%+v, %v; want the position and no numbers", got, err)
	}
}

// A lease that another product took from one of ours and gave up waits for the one it was
// taken from, by the Expiry of that one.
func TestARobbedOwnerIsWaitedForByItsOwnExpiry(t *testing.T) {
	l := Lease{ID: "p..-FF", Version: 1, Range: FullRange(), Owner: "a", Incarnation: "i", Epoch: 3, Expiry: time.Hour, Timestamp: time.Unix(1, 0)}
	var doc map[string]any
	if err := json.Unmarshal(l.encode().Body, &doc); err != nil {
		t.Fatal(err)
	}
	doc["Owner"] = nil
	got, err := decodeLease(Record{ID: l.ID, Body: mustMarshal(doc)})
	if lifetime := got.lifetime(20 * time.Second); err != nil || lifetime != time.Hour {
		t.Errorf("%+v lives for %s, error %v; want an hour", got, lifetime, err)
	}
}

// Each time the info record is missed its hosts get the time to notice, not the first time
// only.
func TestEachLossOfTheInfoRecordIsWaitedOut(t *testing.T) {
	o, err := (&Options{}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &gaps{env: &env{opts: o}}
	now := time.Unix(100, 0)
	for range 2 {
		if _, missing := g.infoMissing(listing{}, now); !missing {
			t.Error("a record that is missed for the first time is given up on")
		}
		if _, missing := g.infoMissing(listing{}, now.Add(o.Expiry)); missing {
			t.Error("a record that is gone for an expiry is still waited for")
		}
		now = now.Add(time.Hour)
		if _, missing := g.infoMissing(listing{info: &Lease{}}, now); missing {
			t.Error("a record that is there is missed")
		}
		now = now.Add(time.Hour)
	}
}

// shelfOfOne is a lease store that notes what is written.
type shelfOfOne struct {
	LeaseStore
	written []string
}

func (s *shelfOfOne) Create(_ context.Context, r Record) (string, error) {
	s.written = append(s.written, string(r.Body))
	return "e", nil
}

func (s *shelfOfOne) Replace(ctx context.Context, r Record) (string, error) { return s.Create(ctx, r) }

// A host that is spare no more says so at once, and one that is spare again too: what it
// said before makes others plan without it, or with it.
func TestAHostSaysAtOnceWhetherItIsSpare(t *testing.T) {
	o, err := (&Options{}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	store := &shelfOfOne{}
	p := &presence{env: &env{opts: o, store: store, obs: &Observer{}}, etags: &etagHistory{}, swept: sweepSchedule{}}
	now := time.Unix(100, 0)
	for n, spare := range []bool{true, false, true} {
		now = now.Add(time.Second)
		for range 2 { // once is enough
			p.updateHeartbeat(t.Context(), listing{}, now, false, spare, false)
		}
		if len(store.written) != n+1 || strings.Contains(store.written[n], `"spare":true`) != spare {
			t.Fatalf("%d: spare %t; written %q", n, spare, store.written)
		}
	}
}
