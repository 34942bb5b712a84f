package relay_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// A store that cannot be read is asked ever less often, and each failure is told by itself:
// it is no try to drain anything.
func TestAStoreThatFailsIsAskedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lot := parkedtest.NewMemory()
		lot.Fail(errors.New("away"))
		failed, drained := &told{}, &told{}
		d := newDrainer(t, lot, publisherFunc(func([]relay.Group) error { return nil }), relay.DrainOptions{
			Poll: 5 * time.Second, LookFailed: func(_ context.Context, err error) { failed.add(err.Error()) },
		}, drained)
		run(t, d)
		time.Sleep(time.Hour)
		if n := len(failed.all()); n < 50 || n > 80 {
			t.Errorf("asked %d times in an hour, want about once a minute", n)
		}
		if lines := drained.all(); len(lines) != 0 {
			t.Errorf("told of %v, nothing was drained", lines)
		}
		lot.Fail(nil)
		time.Sleep(2 * time.Minute)
		lot.Fail(errors.New("away again"))
		before := len(failed.all())
		time.Sleep(20 * time.Second)
		if n := len(failed.all()) - before; n < 2 {
			t.Errorf("asked %d times in 20 s after it had answered, want it each 5 s again", n)
		}
	})
}
