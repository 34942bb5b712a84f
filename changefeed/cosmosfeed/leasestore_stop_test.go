package cosmosfeed_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// slowReplies delays the reply to every replace, unless the caller cancels it.
type slowReplies struct {
	armed   atomic.Bool
	applied chan struct{}
}

func (f *slowReplies) Do(req *policy.Request) (*http.Response, error) {
	reply, err := req.Next()
	if req.Raw().Method != http.MethodPut {
		return reply, err
	}
	if f.armed.Swap(false) {
		f.applied <- struct{}{}
	}
	select {
	case <-time.After(300 * time.Millisecond):
		return reply, err
	case <-req.Raw().Context().Done():
		return nil, req.Raw().Context().Err()
	}
}

// The host stops while the SDK waits for the reply to a lease write.
func TestStopDuringLeaseWriteReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &slowReplies{applied: make(chan struct{}, 1)}
		a := newAccountWith(t, cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()}), far)
		feed, err := cosmosfeed.NewFeed(a.client, "db", "data")
		if err != nil {
			t.Fatal(err)
		}
		var lost, released atomic.Int32
		var got recorder
		p, err := changefeed.New(feed, a.leases("leases"), &got, &changefeed.Options{Host: "a", Observer: &changefeed.Observer{
			LeaseLost:     func(changefeed.LeaseLost) { lost.Add(1) },
			LeaseReleased: func(changefeed.LeaseReleased) { released.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, p)
		a.put(1, 1)
		got.wait(t, 1)
		time.Sleep(3 * time.Second)
		far.armed.Store(true)
		a.put(5, 5)
		<-far.applied
		time.Sleep(100 * time.Millisecond)
		stop()
		leases, err := changefeed.NewOperator(feed, a.leases("leases"), nil).Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lost.Load() != 0 || int(released.Load()) != len(leases) || len(leases) == 0 || leases[0].Owner != "" {
			t.Errorf("%d leases lost, %d released, want all %d released: %+v", lost.Load(), released.Load(), len(leases), leases)
		}
	})
}
