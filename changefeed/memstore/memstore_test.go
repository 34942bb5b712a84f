package memstore_test

import (
	"testing"

	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/changefeed/memstore"
)

func TestConformance(t *testing.T) {
	leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return memstore.New(nil) })
}
