package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"feedbox/application/relay"
)

func TestReasonOf(t *testing.T) {
	for want, errs := range map[string][]error{
		"too_large":   {errTooLarge, fmt.Errorf("send: %w", errTooLarge), &relay.Error{Reason: "too_large", Err: context.Canceled}},
		"interrupted": {context.Canceled, fmt.Errorf("send: %w", context.DeadlineExceeded), &relay.Error{Err: context.Canceled}},
		"unknown":     {nil, errors.New("unheard of"), &relay.Error{Class: relay.Blocked}},
	} {
		for _, err := range errs {
			if got := relay.ReasonOf(err); got != want {
				t.Errorf("the reason of %v is %q, want %q", err, got, want)
			}
		}
	}
}

func TestErrorsContainCause(t *testing.T) {
	cause := errors.New("the cause")
	refused := relay.Refuse("not_first", "event %q: %w", "a1", cause)
	if refused.Class != relay.Refused || refused.Error() != `refused: not_first: event "a1": the cause` || !errors.Is(refused, cause) {
		t.Errorf("%v", refused)
	}
	if got := errBusy.Error(); got != "outage: busy" {
		t.Errorf("without a cause: %q", got)
	}
	publish := &relay.PublishError{Keys: []relay.KeyError{{Sent: 2, Err: errBusy}, {Group: 3, Err: refused}}}
	if got := publish.Error(); got != "publish: 2 keys failed, the first after 2 messages: outage: busy" {
		t.Errorf("%q", got)
	}
	if !errors.Is(publish, errBusy) || !errors.Is(publish, cause) {
		t.Error("a key's cause is not reachable")
	}
	if got := new(relay.PublishError).Error(); got != "publish: no key failed" {
		t.Errorf("%q", got)
	}
}

// late is a context whose deadline has passed but whose timer has not fired.
type late struct{ context.Context } //nolint:containedctx // it is one

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestEndedComparesDeadlineWithClock(t *testing.T) {
	lost := errors.New("the lease is lost")
	given, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	soon, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	for ctx, want := range map[context.Context]error{
		t.Context(): nil, soon: nil, late{t.Context()}: context.DeadlineExceeded, given: lost, late{given}: lost,
	} {
		if err := relay.Ended(ctx); (err == nil) != (want == nil) || !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", ctx, err, want)
		}
	}
}
