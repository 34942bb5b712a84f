package relayfeed_test

import (
	"context"
	"errors"
	"testing"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/relay/relayfeed"
)

func TestStoppedProcessorOwnsNoRange(t *testing.T) {
	t.Parallel()
	idle := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil })
	p, err := changefeed.New(memfeed.New(nil), memstore.New(nil), idle, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = relayfeed.Ranges{Processor: p}.Own(t.Context(), "k", func(context.Context) error { t.Error("was run"); return nil })
	if !errors.Is(err, relay.ErrNotOwned) {
		t.Errorf("error %v, want it to say that the range is not owned", err)
	}
}
