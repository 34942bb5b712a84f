package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/relay/relayfeed"
	"feedbox/infrastructure/store/cosmos"
	stored "feedbox/infrastructure/store/document"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F11: the monotonic clocks of three relays run 1 % fast, 1 % slow and exactly, and their wall clocks
// and that of the store jump by up to ten minutes in both directions. No lease changes its owner.
// The relays are assembled here, because a process takes its clocks from the system.
func TestClocksDriftAndJump(t *testing.T) {
	const full = 60 // jumps
	runScenario(t, testkit.Result{
		Fault: "F11", Name: "relays' clocks drift by 1 % and jump by 10 min, the store's too", Seed: 11, Of: full,
		Note: "no lease was lost or passed on",
	}, world.Topology{APIs: 1, Relays: -1, Consumers: 1, Partitions: 3}, func(s *scenario) {
		var moves atomic.Int64
		var hosts []string
		var clocks []*clock
		for i, rate := range []float64{1.01, 0.99, 1} {
			c := &clock{rate: rate, began: time.Now()}
			clocks = append(clocks, c)
			hosts = append(hosts, fmt.Sprint("relay-", i))
			s.runProcessor(hosts[i], c, &moves)
		}
		s.StartLoad(world.LoadOptions{Writers: 3, Pace: time.Second})
		if !s.Eventually(time.Minute, func() bool { return s.balanced(hosts) }) {
			s.Fatalf("before any jump: %s", s.shared(hosts).Unbalanced())
		}
		s.Sleep(5 * time.Second)
		moves.Store(0)
		jumps := max(6, testkit.Count(s, full))
		for range jumps {
			to := s.between(0, 20*time.Minute) - 10*time.Minute
			if n := s.pick(len(clocks) + 1); n < len(clocks) {
				clocks[n].wall.Store(int64(to))
				s.Trace().Add(hosts[n], "WALL CLOCK %s off", to)
			} else {
				s.SkewCosmos(to)
			}
			s.struck.Add(1)
			s.Sleep(s.between(2*time.Second, 20*time.Second))
		}
		if n := moves.Load(); n > 0 {
			s.Errorf("%d times a lease was lost or passed on", n)
		}
		s.SkewCosmos(0)
		run := s.Settle()
		run.Settled = s.shared(hosts)
		s.verify(run)
	})
}

// runProcessor runs the parts of a relay with its own clocks until the test ends.
func (s *scenario) runProcessor(host string, c *clock, moves *atomic.Int64) {
	s.Helper()
	network := s.NewClient()
	s.Cleanup(network.Close)
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: s.address(), Key: s.Cosmos().Key(), Options: cosmosOptions(network)})
	if err != nil {
		s.Fatal(err)
	}
	bus, err := servicebus.NewClient(servicebus.ClientConfig{
		ConnectionString: s.Bus().ConnectionString(),
		Dial: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return s.Bus().Dial(ctx)
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	publisher, err := servicebus.NewPublisher(bus, world.Topic, nil)
	if err != nil {
		s.Fatal(err)
	}
	r, err := relay.New(stored.EventDecoder{}, publisher, nil)
	if err != nil {
		s.Fatal(err)
	}
	feed, err1 := cosmosfeed.NewFeed(client, world.Database, world.Data)
	leases, err2 := cosmosfeed.NewLeaseStore(client, world.Database, world.Leases)
	if err := errors.Join(err1, err2); err != nil {
		s.Fatal(err)
	}
	p, err := changefeed.New(feed, leases, relayfeed.NewHandler(r), &changefeed.Options{
		Host: host, Expiry: 10 * time.Second, PollMin: 200 * time.Millisecond, PollMax: time.Second, Lanes: 4,
		Now: func() time.Time { return time.Now().Add(time.Duration(c.wall.Load())) }, Clock: c,
		Observer: &changefeed.Observer{
			LeaseLost:     func(changefeed.LeaseLost) { moves.Add(1) },
			LeaseReleased: func(changefeed.LeaseReleased) { moves.Add(1) },
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			s.Errorf("%s: %v", host, err)
		}
	})
	s.Cleanup(func() {
		cancel()
		running.Wait()
		closing, done := context.WithTimeout(context.WithoutCancel(s.Context()), 5*time.Second)
		defer done()
		_ = publisher.Close(closing) // may return the error of a detached link again
		if err := bus.Close(closing); err != nil {
			s.Errorf("%s: %v", host, err)
		}
		client.Close()
	})
}

// cosmosOptions returns client options that connect to the store over network.
func cosmosOptions(network *world.Client) (o azcore.ClientOptions) {
	o.Transport = &wire{client: network}
	return o
}

// clock is a monotonic clock with its own rate and a wall clock with an offset.
type clock struct {
	rate  float64 // seconds per real second
	began time.Time
	wall  atomic.Int64 // nanoseconds
}

// Now implements changefeed.Clock.
func (c *clock) Now() time.Time {
	return c.began.Add(time.Duration(float64(time.Since(c.began)) * c.rate))
}

// AfterFunc implements changefeed.Clock.
func (c *clock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(time.Duration(float64(d)/c.rate)+1, f).Stop
}
