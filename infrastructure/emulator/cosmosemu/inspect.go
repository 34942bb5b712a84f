package cosmosemu

import (
	"bytes"
	"fmt"
	"io"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// Items returns the live items of a container in the order of insertion. It does not use
// the wire, so faults do not apply.
func (s *Server) Items(database, container string) ([][]byte, error) {
	var items [][]byte
	err := s.within(database, container, func(c *store.Container) error {
		return c.Scan(store.Scope{}, func(_ uint64, body []byte) bool {
			items = append(items, bytes.Clone(body))
			return true
		})
	})
	if err != nil {
		return nil, fmt.Errorf("cosmosemu: items of %s/%s: %w", database, container, err)
	}
	return items, nil
}

// Dump writes all databases, containers, physical partitions and items, to explain a
// failed test.
func (s *Server) Dump(w io.Writer) error {
	for _, db := range s.store.Databases() {
		for _, c := range s.store.Containers(db) {
			def := c.Definition()
			if c.Restoring() {
				if _, err := fmt.Fprintf(w, "%s/%s: being restored\n", db.ID, def.ID); err != nil {
					return err
				}
				continue
			}
			items, err := s.Items(db.ID, def.ID)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s/%s: %d items\n", db.ID, def.ID, len(items)); err != nil {
				return err
			}
			ranges, err := s.PartitionKeyRanges(db.ID, def.ID)
			if err != nil {
				return err
			}
			for _, r := range ranges {
				if _, err := fmt.Fprintf(w, "  range %s [%s,%s) of %v, LSN %d\n", r.ID, r.MinInclusive, r.MaxExclusive, r.Parents, r.LSN); err != nil {
					return err
				}
			}
			for _, item := range items {
				if _, err := fmt.Fprintf(w, "  %s\n", item); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
