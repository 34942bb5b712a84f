package publish_test

import (
	"errors"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// A refused message must not hide a failure of the broker.
func TestReportPrefersTheErrorOfTheBroker(t *testing.T) {
	t.Parallel()
	first, second, other := errors.New("first"), errors.New("second"), errors.New("other")
	refused := relay.Refuse("too_large", "1 MB")
	results := []relay.KeyError{{}, {Err: other}, {Err: first}, {Err: second}, {Err: refused}}
	for _, c := range []struct {
		sent []int
		want error
	}{{[]int{0, 2, 3}, first}, {[]int{3, 2}, second}, {[]int{0}, nil}, {nil, nil}, {[]int{0, 4}, refused}, {[]int{4, 2, 3}, first}, {[]int{2, 4}, first}} {
		r := publish.Report(results, c.sent, 5, 3, time.Now().Add(-time.Second))
		if r.Err != c.want || r.Keys != len(c.sent) || r.Messages != 5 || r.Accepted != 3 || r.Took < time.Second { //nolint:errorlint // the same one
			t.Errorf("groups %v: %+v, want error %v", c.sent, r, c.want)
		}
	}
}
