package changefeed

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Jitter must not shorten the pause that a throttled store asked for.
func TestBackoffIsNeverShorterThanRetryAfter(t *testing.T) {
	b := backoff{min: time.Millisecond, max: time.Second}
	for range 200 {
		if got := b.next(&ThrottledError{RetryAfter: 10 * time.Second}); got < 10*time.Second {
			t.Fatalf("a pause of %s, the store asked for 10 s", got)
		}
	}
}

func TestBackoffGrowsIsCappedAndHeedsThrottling(t *testing.T) {
	b := backoff{min: time.Second, max: 20 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 20, 20} {
		want *= time.Second //nolint:durationcheck // a bare number of seconds until here
		if d := b.next(nil); d < want*8/10 || d > want*12/10 {
			t.Errorf("pause %d is %s, want about %s", i, d, want)
		}
	}
	if d := b.next(&ThrottledError{RetryAfter: time.Millisecond}); d < 16*time.Second {
		t.Errorf("throttled for a millisecond after 7 failures, comes back after %s", d)
	}
	b.reset()
	if d := b.next(&ThrottledError{RetryAfter: time.Minute}); d < time.Minute {
		t.Errorf("throttled for a minute, comes back after %s", d)
	}
}

func TestRefusedOwnCallIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls ownCalls
		if calls.begin() {
			t.Error("let in before a session begins")
		}
		waits := true
		go func() { calls.running.Wait(); waits = false }()
		if synctest.Wait(); waits {
			t.Error("a refused call is waited for")
			calls.running.Done()
		}
	})
}

// The ETag is another one although no one has changed the record: what it does not contain is lost.
func TestRecordOfAnotherTermIsNotAdopted(t *testing.T) {
	store := &funcStore{}
	_, k := keeperOf(t, store, &manualClock{now: time.Unix(100, 0)}, &Observer{})
	mine := k.snapshot()
	store.replace = func(Record) (string, error) { return "", ErrETagMismatch }
	for _, lost := range []int64{0, 1} { // the acquisition may be lost, too
		theirs := mine
		theirs.Epoch -= lost
		store.read = func() (Record, error) {
			r := theirs.encode()
			r.ETag, r.Term = "other", "7:2"
			return r, nil
		}
		if err := k.write(t.Context()); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("epoch %d after %d: %v, want the lease to be lost", theirs.Epoch, mine.Epoch, err)
		}
	}
}

// An item has its answer, or else the call's outcome, which blames none of several items.
func TestVerdictsAfterACall(t *testing.T) {
	failed, refuses := errors.New("failed"), Refuse(errors.New("refused"))
	until := time.Unix(100, 0)
	waits := WaitUntil(until, errors.New("waits"))
	ok, silent := verdict{kind: done}, verdict{err: errUnanswered}
	for name, c := range map[string]struct {
		items   int
		answers map[int]error
		call    error
		want    []verdict
		first   error
	}{
		"all is done":                        {2, nil, nil, nil, nil},
		"each is done":                       {2, map[int]error{0: nil, 1: nil}, nil, []verdict{ok, ok}, nil},
		"the call failed":                    {2, nil, failed, []verdict{{err: failed}, {err: failed}}, failed},
		"one was refused by the call":        {1, nil, refuses, []verdict{{kind: refused, err: refuses}}, refuses},
		"one of several was refused":         {2, nil, refuses, []verdict{{err: refuses}, {err: refuses}}, refuses},
		"the call waits":                     {2, nil, waits, []verdict{{err: waits, outside: true, notBefore: until}, {err: waits, outside: true, notBefore: until}}, waits},
		"the first is not answered for":      {2, map[int]error{1: nil}, nil, []verdict{silent, ok}, errUnanswered},
		"the last is not answered for":       {2, map[int]error{0: nil}, nil, []verdict{ok, silent}, errUnanswered},
		"one is answered for, then it fails": {2, map[int]error{0: nil}, failed, []verdict{ok, {err: failed}}, failed},
		"an answer before silence":           {3, map[int]error{1: failed, 2: nil}, nil, []verdict{silent, {kind: waiting, err: failed}, ok}, failed},
		"the first of two answers":           {2, map[int]error{0: failed, 1: refuses}, nil, []verdict{{kind: waiting, err: failed}, {kind: refused, err: refuses}}, failed},
		"one waits until a time":             {2, map[int]error{0: waits, 1: nil}, nil, []verdict{{kind: waiting, err: waits, outside: true, notBefore: until}, ok}, waits},
	} {
		b := Batch{Items: make([]Item, c.items), answers: &answers{}}
		for i, err := range c.answers {
			b.Answer(i, err)
		}
		got := b.verdicts(c.call)
		if !slices.Equal(got, c.want) || !errors.Is(firstFailure(got), c.first) || (firstFailure(got) == nil) != (c.first == nil) {
			t.Errorf("%s: %+v, first %v; want %+v, %v", name, got, firstFailure(got), c.want, c.first)
		}
	}
}

func TestNilErrorIsDone(t *testing.T) {
	if err := Refuse(nil); err != nil {
		t.Errorf("Refuse(nil) is %v", err)
	}
	if err := WaitUntil(time.Now(), nil); err != nil {
		t.Errorf("WaitUntil(t, nil) is %v", err)
	}
}

func TestAnswerForMissingItemPanics(t *testing.T) {
	for _, i := range []int{-1, 2} {
		b := Batch{Items: make([]Item, 2), answers: &answers{}}
		func() {
			defer func() {
				if got, want := recover(), fmt.Sprintf("changefeed: answer for item %d of a batch of 2", i); got != want {
					t.Errorf("item %d: panic %v, want %q", i, got, want)
				}
			}()
			b.Answer(i, nil)
		}()
	}
}

// One long silence says nothing about a range whose changes come fast after it.
func TestPollingFollowsFastChangesAfterASilence(t *testing.T) {
	o, err := (&Options{PollBusy: time.Millisecond}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	p := poller{Options: &o, turns: &turns{}, last: now, patience: 100, gap: o.PollMin, pauseNow: o.PollMin}
	now = now.Add(time.Hour)
	p.changed(now, 1)
	for range 40 {
		now = now.Add(10 * time.Millisecond)
		p.changed(now, 1)
	}
	if d := p.pause(now); d > 30*time.Millisecond {
		t.Errorf("a pause of %s with changes each 10 ms", d)
	}
}

func TestIntersectionHasTheKeysOfBothRanges(t *testing.T) {
	for _, c := range []struct{ a, b, want FeedRange }{
		{rng("", "FF"), rng("20", "40"), rng("20", "40")},
		{rng("", "30"), rng("20", "40"), rng("20", "30")},
		{rng("20", "30"), rng("20", "40"), rng("20", "30")},
		{rng("", "20"), rng("20", "40"), rng("20", "20")},
		{rng("", "10"), rng("20", "40"), rng("20", "10")},
		{rng("1F", "FF"), rng("1F00", "2F"), rng("1F", "2F")}, // the same bound
	} {
		for _, got := range []FeedRange{c.a.Intersect(c.b), c.b.Intersect(c.a)} {
			empty := compareKeys(c.want.Min, c.want.Max) >= 0
			if got.Empty() != empty || c.a.Overlaps(c.b) == empty || !empty && !got.Equal(c.want) {
				t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
			}
		}
	}
}
