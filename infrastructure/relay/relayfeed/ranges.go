package relayfeed

import (
	"context"
	"errors"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Ranges lets a relay.Drainer work under the leases of a processor.
type Ranges struct{ Processor *changefeed.Processor }

var _ relay.Ranges = Ranges{}

// Own implements relay.Ranges.
func (r Ranges) Own(ctx context.Context, key string, do func(ctx context.Context) error) error {
	err := r.Processor.Own(ctx, key, do)
	if errors.Is(err, changefeed.ErrNotOwned) {
		return errors.Join(relay.ErrNotOwned, err)
	}
	return err
}
