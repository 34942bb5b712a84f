package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"feedbox/domain/fault"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	throttled := fault.Wrap(fault.Throttled, "", "busy", io.EOF)
	throttled.RetryAfter = time.Second
	wrapped := fmt.Errorf("outer: %w", throttled)
	if got := fault.KindOf(wrapped); got != fault.Throttled {
		t.Errorf("kind of a wrapped fault: %s", got)
	}
	if got := fault.RetryAfter(wrapped); got != time.Second {
		t.Errorf("retry after: %s", got)
	}
	if !errors.Is(wrapped, io.EOF) {
		t.Error("the cause is lost")
	}
	if got := fault.KindOf(io.EOF); got != fault.Internal {
		t.Errorf("kind of an error without a fault: %s", got)
	}
	if fault.Is(io.EOF, fault.Internal) {
		t.Error("Is finds a fault in an error without one")
	}
}

func TestMergeListsAllFieldsAndLetsOtherFaultsWin(t *testing.T) {
	t.Parallel()
	first := fault.Fields(fault.Field{Pointer: "/a", Message: "must be"})
	second := fault.At("/b", fault.Fields(fault.Field{Pointer: "/c", Message: "must not be"}))
	merged := fault.Merge(nil, first, nil, second)
	want := "the request breaks the rules of its fields: /a must be; /b/c must not be"
	if diff := cmp.Diff(want, fmt.Sprint(merged)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	gone := fault.New(fault.Gone, "", "gone")
	if got := fault.Merge(first, gone, second); !errors.Is(got, gone) {
		t.Errorf("merged with another fault: %v", got)
	}
	if err := fault.Merge(nil, nil); err != nil {
		t.Errorf("merged nothing: %v", err)
	}
	if err := fault.Fields(); err != nil {
		t.Errorf("no fields: %v", err)
	}
}

func TestEveryKindHasAName(t *testing.T) {
	t.Parallel()
	seen := map[string]fault.Kind{}
	for kind := fault.Internal; kind <= fault.Unavailable; kind++ {
		if other, taken := seen[kind.String()]; taken {
			t.Errorf("kinds %d and %d are both %q", kind, other, kind)
		}
		seen[kind.String()] = kind
	}
}
