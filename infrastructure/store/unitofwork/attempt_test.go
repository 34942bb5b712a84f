package unitofwork_test

import (
	"errors"
	"testing"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/unitofwork"
)

// Attempt repeats what may succeed, stops at a refusal, and reports an unknown outcome as such.
// The tests of the stores cover waits and timeouts.
func TestAttempt(t *testing.T) {
	t.Parallel()
	busy := unitofwork.Outcome{Err: fault.New(fault.Throttled, "", "busy"), Transient: true}
	lost := unitofwork.Outcome{Err: fault.New(fault.Unavailable, "", "lost"), Unknown: true}
	refused := unitofwork.Outcome{Err: fault.New(fault.Conflict, "", "refused")}
	broken := unitofwork.Outcome{Err: errors.New("broken")}
	stored := unitofwork.Outcome{}
	for name, test := range map[string]struct {
		outcomes []unitofwork.Outcome
		kind     fault.Kind // if it fails
		code     string
		fails    bool
	}{
		"stored":                            {outcomes: []unitofwork.Outcome{stored}},
		"stored after transient refusals":   {outcomes: []unitofwork.Outcome{busy, busy, stored}},
		"stored after a lost answer":        {outcomes: []unitofwork.Outcome{lost, stored}},
		"refused":                           {[]unitofwork.Outcome{refused}, fault.Conflict, "", true},
		"refused after a lost answer":       {[]unitofwork.Outcome{lost, refused}, fault.Conflict, "", true},
		"throttled in all attempts":         {[]unitofwork.Outcome{busy, busy, busy}, fault.Throttled, "", true},
		"failed for good":                   {[]unitofwork.Outcome{broken}, fault.Internal, "", true},
		"no answer":                         {[]unitofwork.Outcome{lost, lost, lost}, fault.Unavailable, unitofwork.CodeOutcomeUnknown, true},
		"failed after a lost answer":        {[]unitofwork.Outcome{lost, broken, broken}, fault.Unavailable, unitofwork.CodeOutcomeUnknown, true},
		"throttled again after lost answer": {[]unitofwork.Outcome{lost, busy, busy}, fault.Unavailable, unitofwork.CodeOutcomeUnknown, true},
	} {
		o := (&unitofwork.Options{Backoff: -1}).WithDefaults()
		calls := 0
		err := o.Attempt(t.Context(), func(unknown bool) unitofwork.Outcome {
			if want := calls > 0 && test.outcomes[0].Unknown; unknown != want {
				t.Errorf("%s: attempt %d: unknown is %t", name, calls+1, unknown)
			}
			calls++
			return test.outcomes[calls-1]
		})
		if calls != len(test.outcomes) {
			t.Errorf("%s: %d attempts, want %d", name, calls, len(test.outcomes))
		}
		if (err != nil) != test.fails || test.fails && fault.KindOf(err) != test.kind {
			t.Errorf("%s: %v", name, err)
		}
		var f *fault.Error
		if errors.As(err, &f) && (f.Code == unitofwork.CodeOutcomeUnknown) != (test.code != "") {
			t.Errorf("%s: code %q", name, f.Code)
		}
	}
}
