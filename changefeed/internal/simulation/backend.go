package simulation

import (
	"context"

	"feedbox/changefeed"
)

// Backend is the container and the lease store under the hosts.
type Backend interface {
	// Connect gives a host its own view of both.
	Connect(host string) (changefeed.Feed, changefeed.LeaseStore, error)
	// Put writes a document whose body has the member "serial"; it returns the
	// LSN of the change.
	Put(ctx context.Context, key, id string, serial int) (lsn int64, err error)
	// EPK is the effective partition key of a key.
	EPK(key string) string
	// Split and Merge change the physical range that holds an effective partition
	// key. They do nothing where it cannot be done.
	Split(epk string)
	Merge(epk string)
}
