package recordstore

import (
	"context"
	"time"

	"feedbox/infrastructure/store/unitofwork"
)

// Pause waits between half of wait and wait, so that hosts do not retry in step. It returns
// the error of ctx if that ends first.
func Pause(ctx context.Context, wait time.Duration) error {
	return unitofwork.Pause(ctx, unitofwork.Jitter(max(wait, 0)))
}
