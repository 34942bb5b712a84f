package relay

import (
	"context"
	"fmt"
	"time"
)

// Ended returns why no send may start any more under ctx, nil while it lasts. The timer behind
// ctx.Done may fire late after the process stood still, and the fence must hold then above all.
func Ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if deadline, ok := ctx.Deadline(); cause == nil && ok && !time.Now().Before(deadline) { //nolint:forbidigo // a deadline is of the real clock
		cause = context.DeadlineExceeded
	}
	if cause == nil {
		return nil
	}
	return fmt.Errorf("send: %w", cause)
}
