package faults

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F23: all leases are deleted, with and without running relays. Everything is read again from the
// beginning and sent twice. The broker drops the duplicates, and no event is missing.
func TestWipedLeases(t *testing.T) {
	const full = 40 // wipes
	runScenario(t, testkit.Result{
		Fault: "F23", Name: "all leases deleted, with relays running and without", Seed: 23, Of: full,
	}, world.Topology{APIs: 1, Relays: 2, Consumers: 1, DuplicateWindow: 7 * 24 * time.Hour}, func(s *scenario) {
		leases := s.containers(world.Leases)[0]
		load := s.StartLoad(world.LoadOptions{Writers: 2, Pace: time.Second})
		var bound int64 // of events that can be sent twice
		for i := range max(2, testkit.Count(s, full)) {
			s.Sleep(s.between(20*time.Second, 30*time.Second))
			running := i%2 == 0
			if !running {
				for _, name := range s.Kind("relay") {
					s.Stop(name)
				}
				s.Sleep(10 * time.Second)
			}
			bound += s.Accepted()
			if s.wipe(leases) > 0 {
				s.struck.Add(1)
			}
			s.Start(s.Kind("relay")...)
			if !s.Eventually(time.Minute, func() bool { return len(s.leases()) > 0 }) {
				s.Fatal("a minute after they were deleted there are no leases")
			}
		}
		s.Sleep(20 * time.Second)
		load.Stop()
		s.judge()
		s.wantNoOrphans()
		sent := s.Duplicates()
		s.Logf("%d messages were sent again after %d wipes, %d at most can be", sent, s.struck.Load(), bound)
		if sent == 0 || sent > bound+200 {
			s.Errorf("%d messages were sent again, want 1 to %d", sent, bound)
		}
	})
}

// wipe deletes every document of the leases and returns their number.
func (s *scenario) wipe(c *azcosmos.ContainerClient) int {
	s.Helper()
	raw, err := s.Cosmos().Items(world.Database, world.Leases)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range raw {
		var d struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(r, &d); err != nil {
			s.Fatal(err)
		}
		_, _ = c.DeleteItem(s.Context(), azcosmos.NewPartitionKeyString(d.ID), d.ID, nil) // 404: a relay was faster
	}
	return len(raw)
}
