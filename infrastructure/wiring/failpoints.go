package wiring

import (
	"context"

	"feedbox/changefeed"
	"feedbox/infrastructure/process/failpoint"
)

// struckLeases is a lease store with failpoints around its writes. It exists in
// binaries built for fault tests only; see package failpoint.
type struckLeases struct{ changefeed.LeaseStore }

// withFailpoints returns leases, in a test binary with failpoints around them.
func withFailpoints(leases changefeed.LeaseStore) changefeed.LeaseStore {
	if !failpoint.Armed {
		return leases
	}
	return struckLeases{leases}
}

// Create implements changefeed.LeaseStore.
func (s struckLeases) Create(ctx context.Context, r changefeed.Record) (etag string, err error) {
	failpoint.Here("lease-creating")
	etag, err = s.LeaseStore.Create(ctx, r)
	if err == nil {
		failpoint.Here("lease-created")
	}
	return etag, err
}

// Replace implements changefeed.LeaseStore.
func (s struckLeases) Replace(ctx context.Context, r changefeed.Record) (etag string, err error) {
	etag, err = s.LeaseStore.Replace(ctx, r)
	if err == nil {
		failpoint.Here("lease-renewed")
	}
	return etag, err
}
