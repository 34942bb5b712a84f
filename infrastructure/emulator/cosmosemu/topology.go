package cosmosemu

import (
	"fmt"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// PartitionKeyRange describes a physical partition.
type PartitionKeyRange struct {
	ID           string
	MinInclusive string // hexadecimal
	MaxExclusive string
	Parents      []string
	LSN          uint64 // of the last transaction

	// With Options.Throughput: the share in request units per second, those used in the last whole
	// second, and the number of throttled requests. A hot partition uses its whole share.
	Throughput, Consumed float64
	Throttled            int
}

// PartitionKeyRanges lists the live physical partitions of a container in order.
func (s *Server) PartitionKeyRanges(database, container string) ([]PartitionKeyRange, error) {
	var out []PartitionKeyRange
	err := s.within(database, container, func(c *store.Container) error {
		for _, r := range c.Topology().Ranges {
			share, consumed, throttled := s.usage(c, &r)
			out = append(out, PartitionKeyRange{r.ID, epk.Format(r.Min), epk.Format(r.Max), r.Parents, r.LSN(), share, consumed, throttled})
		}
		return nil
	})
	return out, err
}

// Split divides a physical partition in the middle. From then on requests to it get 410
// with sub-status 1002, and its two children continue at its LSN.
func (s *Server) Split(database, container, rangeID string) error {
	if err := s.within(database, container, pruning(&s.budgets, func(c *store.Container) error { return c.Split(rangeID, nil) })); err != nil {
		return fmt.Errorf("cosmosemu: split range %s of %s/%s: %w", rangeID, database, container, err)
	}
	return nil
}

// SplitAt divides a physical partition at an effective partition key in hexadecimal.
func (s *Server) SplitAt(database, container, rangeID, key string) error {
	bounds, err := epk.ParseRange(key, "FF")
	if err != nil {
		return fmt.Errorf("cosmosemu: split range %s at %q: %w", rangeID, key, err)
	}
	if err := s.within(database, container, pruning(&s.budgets, func(c *store.Container) error { return c.Split(rangeID, bounds.Min) })); err != nil {
		return fmt.Errorf("cosmosemu: split range %s of %s/%s at %s: %w", rangeID, database, container, key, err)
	}
	return nil
}

// Merge joins two adjacent physical partitions, given in order.
func (s *Server) Merge(database, container, left, right string) error {
	if err := s.within(database, container, pruning(&s.budgets, func(c *store.Container) error { return c.Merge(left, right) })); err != nil {
		return fmt.Errorf("cosmosemu: merge ranges %s and %s of %s/%s: %w", left, right, database, container, err)
	}
	return nil
}

// pruning returns do with the removal of the budgets of the ranges that it replaces.
func pruning(b *budgets, do func(c *store.Container) error) func(c *store.Container) error {
	return func(c *store.Container) error {
		defer b.prune()
		return do(c)
	}
}

// within calls do with a container, which stays open meanwhile.
func (s *Server) within(database, container string, do func(c *store.Container) error) error {
	if err := s.calls.begin(); err != nil {
		return err
	}
	defer s.calls.Done()
	db, err := s.store.Database(database)
	if err != nil {
		return err
	}
	c, err := s.store.Container(db, container)
	if err != nil {
		return err
	}
	return do(c)
}
