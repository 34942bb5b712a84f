package cosmosfeed

import (
	"errors"
	"testing"
)

// What shows that computed keys are wrong is told with one page, not with each.
func TestADoubtIsToldOnce(t *testing.T) {
	f := &Feed{}
	first, other := &filter{doubt: errors.New("first")}, &filter{doubt: errors.New("other")}
	for n, want := range []error{first.doubt, nil, nil} {
		g := first
		if n > 0 {
			g = other
		}
		if err := f.rememberDoubt(g, nil); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("page %d: told %v, want %v", n, err, want)
		}
	}
	if err := f.rememberDoubt(&filter{}, nil); err != nil || !errors.Is(*f.doubt.Load(), first.doubt) {
		t.Errorf("told %v; remembered %v", err, *f.doubt.Load())
	}
}
