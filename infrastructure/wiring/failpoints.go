package wiring

import (
	"context"

	"feedbox/changefeed"
	"feedbox/infrastructure/process/failpoint"
)

// failpointLeases is a lease store with failpoints around its writes. Only binaries for
// fault tests use it; see package failpoint.
type failpointLeases struct{ changefeed.LeaseStore }

// withFailpoints returns leases, in a binary for fault tests with failpoints.
func withFailpoints(leases changefeed.LeaseStore) changefeed.LeaseStore {
	if !failpoint.Armed {
		return leases
	}
	return failpointLeases{leases}
}

// Create implements changefeed.LeaseStore.
func (s failpointLeases) Create(ctx context.Context, r changefeed.Record) (etag string, err error) {
	failpoint.Here("lease-creating")
	etag, err = s.LeaseStore.Create(ctx, r)
	if err == nil {
		failpoint.Here("lease-created")
	}
	return etag, err
}

// Replace implements changefeed.LeaseStore.
func (s failpointLeases) Replace(ctx context.Context, r changefeed.Record) (etag string, err error) {
	etag, err = s.LeaseStore.Replace(ctx, r)
	if err == nil {
		failpoint.Here("lease-renewed")
	}
	return etag, err
}
