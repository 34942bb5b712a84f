package relayport_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
)

func TestParkedEventsBelongToOneProcessor(t *testing.T) {
	t.Parallel()
	s := &relayport.Store{Name: "memory", Markers: memstore.New(nil)}
	ctx := t.Context()
	if owner, err := s.Owner(ctx); owner != "" || err != nil {
		t.Errorf("before any relay: %q, %v", owner, err)
	}
	for range 2 { // start and restart
		if err := s.Claim(ctx, "one"); err != nil {
			t.Errorf("the first processor: %v", err)
		}
	}
	owned, ok := errors.AsType[*relayport.OwnedError](s.Claim(ctx, "two"))
	if !ok || owned.Owner != "one" || !strings.Contains(owned.Error(), "feedbox parked adopt") {
		t.Errorf("the second processor: %v", owned)
	}
	if previous, err := s.Adopt(ctx, "two"); previous != "one" || err != nil {
		t.Errorf("adopt: %q, %v", previous, err)
	}
	if err := s.Claim(ctx, "two"); err != nil {
		t.Errorf("after the adoption: %v", err)
	}
	if err := s.Claim(ctx, "one"); !errors.As(err, &owned) {
		t.Errorf("the earlier processor after the adoption: %v", err)
	}
}

// A container stays recorded when the configuration no longer names it, also after an adoption.
func TestContainersThatRelaysHaveReadStayRecorded(t *testing.T) {
	t.Parallel()
	s := &relayport.Store{Name: "memory", Markers: memstore.New(nil)}
	ctx := t.Context()
	if err := errors.Join(s.Claim(ctx, "one"), s.RecordOthers(ctx, []string{"a/l/p", "b/l/p"}), s.RecordOthers(ctx, nil), s.RecordOthers(ctx, []string{"b/l/p", "c/l/p"})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Adopt(ctx, "two", "shard"); err != nil {
		t.Fatal(err)
	}
	if others, err := s.Others(ctx); strings.Join(others, " ") != "a/l/p b/l/p c/l/p" || err != nil {
		t.Errorf("recorded are %v, %v", others, err)
	}
	if err := errors.Join(s.Claim(ctx, "two", "shard"), (&relayport.Store{}).RecordOthers(ctx, []string{"a/l/p"})); err != nil {
		t.Error(err)
	}
}

// Of two processors that start at the same time one is refused.
func TestOneOfTwoClaimsAtOnceIsRefused(t *testing.T) {
	t.Parallel()
	s := &relayport.Store{Name: "memory", Markers: late{memstore.New(nil), make(chan struct{}, 2)}}
	var wg sync.WaitGroup
	failed := make([]error, 2)
	for i, name := range []string{"one", "two"} {
		wg.Go(func() { failed[i] = s.Claim(t.Context(), name) })
	}
	wg.Wait()
	if (failed[0] == nil) == (failed[1] == nil) {
		t.Errorf("%v; want exactly one refusal", failed)
	}
}

// late answers the first two reads only once both have been made.
type late struct {
	*memstore.Store
	reads chan struct{}
}

// Read implements changefeed.LeaseStore.
func (l late) Read(ctx context.Context, id string) (changefeed.Record, error) {
	record, err := l.Store.Read(ctx, id)
	select {
	case l.reads <- struct{}{}:
		for len(l.reads) < 2 {
			if ctx.Err() != nil {
				return record, ctx.Err()
			}
		}
	default: // a later read
	}
	return record, err
}

// damaged has a marker without a name, or does not answer.
type damaged struct {
	*memstore.Store
	err error
}

// Read implements changefeed.LeaseStore.
func (d damaged) Read(context.Context, string) (changefeed.Record, error) {
	return changefeed.Record{ETag: "x", Body: []byte(`{}`)}, d.err
}

func TestUnreadableOwnerIsNotNoOwner(t *testing.T) {
	t.Parallel()
	s := &relayport.Store{Markers: damaged{memstore.New(nil), errors.New("away")}}
	if err := s.Claim(t.Context(), "one"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a store that does not answer: %v", err)
	}
	s.Markers = damaged{memstore.New(nil), changefeed.ErrPermanent}
	if err := s.Claim(t.Context(), "one"); !errors.Is(err, changefeed.ErrPermanent) || fault.Is(err, fault.Unavailable) {
		t.Errorf("a missing role: %v", err)
	}
	s.Markers = damaged{memstore.New(nil), nil}
	if err := s.Claim(t.Context(), "one"); err == nil || !strings.Contains(err.Error(), "names no processor") {
		t.Errorf("a damaged marker: %v", err)
	}
	s.Markers = nil
	if err := s.Claim(t.Context(), "one"); err != nil {
		t.Errorf("a store without markers: %v", err)
	}
	if _, err := s.Adopt(t.Context(), "one"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("adopt in a store without markers: %v", err)
	}
}

// The refusal of a damaged marker advises an adoption, which must succeed.
func TestDamagedOwnerIsAdopted(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"processor":`} {
		markers := memstore.New(nil)
		if _, err := markers.Create(t.Context(), changefeed.Record{ID: "$owner", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		s := &relayport.Store{Name: "memory", Markers: markers}
		if err := s.Claim(t.Context(), "one", "a"); err == nil || !strings.Contains(err.Error(), "run feedbox parked adopt") {
			t.Errorf("claim of %s: %v", body, err)
		}
		if _, err := s.Adopt(t.Context(), "one", "a"); err != nil {
			t.Errorf("adopt %s: %v", body, err)
		}
		if err := s.Claim(t.Context(), "one", "a"); err != nil {
			t.Errorf("%s after the adoption: %v", body, err)
		}
	}
}

// A relay with other shards would send events before earlier ones of their keys are handled.
func TestOtherShardsAreRefusedUntilTheyAreAdopted(t *testing.T) {
	t.Parallel()
	for _, c := range [][2][]string{{nil, {"a", "b"}}, {{"a", "b"}, nil}, {{"a", "b"}, {"a", "b", "c"}}, {{"a", "b"}, {"b", "a"}}} {
		s, before, after := &relayport.Store{Name: "memory", Markers: memstore.New(nil)}, c[0], c[1]
		for range 2 { // start and restart
			if err := s.Claim(t.Context(), "one", before...); err != nil {
				t.Errorf("%v: %v", before, err)
			}
		}
		changed, ok := errors.AsType[*relayport.ShardsError](s.Claim(t.Context(), "one", after...))
		if !ok || !strings.Contains(changed.Error(), "feedbox parked adopt") {
			t.Errorf("%v to %v: %v", before, after, changed)
		}
		if _, err := s.Adopt(t.Context(), "one", after...); err != nil {
			t.Errorf("adopt %v: %v", after, err)
		}
		if err := s.Claim(t.Context(), "one", after...); err != nil {
			t.Errorf("%v after the adoption: %v", after, err)
		}
		if err := s.CheckShards(t.Context(), before); !errors.As(err, &changed) {
			t.Errorf("%v after the adoption of %v: %v", before, after, err)
		}
	}
}
