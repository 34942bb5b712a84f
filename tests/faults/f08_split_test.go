package faults

import (
	"fmt"
	"testing"
	"time"

	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F8: physical partitions split under load, one of the children splits again, and partitions merge.
// Events of a key keep their order, and each key is in one lease.
func TestSplitsUnderLoad(t *testing.T) {
	const full = 60 // splits and merges
	runScenario(t, testkit.Result{
		Fault: "F8", Name: "ranges split twice and merge under load", Seed: 8, Of: full,
	}, world.Topology{APIs: 1, Consumers: 1, Partitions: 1}, func(s *scenario) {
		s.StartLoad(world.LoadOptions{Writers: 3, Pace: 400 * time.Millisecond})
		s.Sleep(5 * time.Second)
		for round := range max(1, testkit.Count(s, full)/3) {
			key := fmt.Sprint("any", round, s.pick(1000))
			for _, change := range []func(string) bool{s.Split, s.Split, s.Merge} {
				if change(key) {
					s.struck.Add(1)
				}
				s.Sleep(s.between(time.Second, 8*time.Second))
			}
		}
		s.judge()
		s.wantNoOrphans()
		ranges, err := s.Cosmos().PartitionKeyRanges(world.Database, world.Data)
		if err != nil {
			s.Fatal(err)
		}
		s.Logf("%d physical partitions, %d leases", len(ranges), len(s.leases()))
	})
}
