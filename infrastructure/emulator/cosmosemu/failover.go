package cosmosemu

import (
	"fmt"
	"slices"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// LoseWrites removes the writes of a physical partition with an LSN above lsn, as an unplanned
// failover to a region whose replica of this partition lags. Documents return to their earlier
// state, and the next write has the LSN lsn+1. It has another ETag than the lost write with this
// LSN, because LoseWrites moves the clock by a millisecond.
//
// The change feed answers a position ahead of the end with 304, the same position and a session
// token with the last LSN. The version of the partition's session tokens increases. A session
// token ahead of the end is refused with 404/1002 until there is a write with its LSN, as with
// every replica that lags.
//
// The container must have been created with Options.KeepWrites. Writes from before the
// partition's last split or merge cannot be lost.
func (s *Server) LoseWrites(database, container, rangeID string, lsn uint64) error {
	if err := s.within(database, container, func(c *store.Container) error { return c.Lose(rangeID, lsn) }); err != nil {
		return fmt.Errorf("cosmosemu: lose the writes of range %s of %s/%s after LSN %d: %w", rangeID, database, container, lsn, err)
	}
	s.Advance(time.Millisecond)
	return nil
}

// BeginRestore deletes a container and begins to restore it in the same account, as of a time.
// Until EndRestore requests for it are answered with 404. The restored container has the same
// name and resource id, and its documents have their ETags. The change feed omits their earlier
// changes, and LSNs begin at 1 again.
//
// Source: "Restore deleted databases/containers in the same account with continuous backup" of
// Microsoft Learn, which says that session and continuation tokens become invalid. It does not
// say how the service answers them. We assume that LSNs begin again, so that a position
// of the earlier container is ahead of the end: see LoseWrites. The number of physical
// partitions and their ids remain, although the service may change them.
//
// The container must have been created with Options.KeepWrites.
func (s *Server) BeginRestore(database, container string, at time.Time) error {
	if err := s.within(database, container, func(c *store.Container) error { return c.BeginRestore(at) }); err != nil {
		return fmt.Errorf("cosmosemu: restore %s/%s: %w", database, container, err)
	}
	s.Advance(time.Millisecond) // see LoseWrites
	return nil
}

// EndRestore makes a restored container available.
func (s *Server) EndRestore(database, container string) error {
	err := s.calls.begin()
	if err == nil {
		defer s.calls.Done()
		err = s.endRestore(database, container)
	}
	if err != nil {
		return fmt.Errorf("cosmosemu: end the restore of %s/%s: %w", database, container, err)
	}
	return nil
}

func (s *account) endRestore(database, container string) error {
	db, err := s.store.Database(database)
	if err != nil {
		return err
	}
	c, err := s.store.Restoring(db, container)
	if err != nil {
		return err
	}
	return c.EndRestore()
}

// FailOver moves the writes to another region. Writes in the earlier one are refused with 403/3.
// The account still advertises the earlier one for writes until AdvertiseRegions, as the service
// does for minutes. It fails if all regions accept writes.
func (s *Server) FailOver(region string) error {
	i, err := s.region(region)
	if err == nil && s.options.MultipleWriteRegions {
		err = refuse(400, "all regions accept writes")
	}
	if err == nil {
		err = s.regions.failOver(i)
	}
	if err != nil {
		return fmt.Errorf("cosmosemu: fail over to the region %q: %w", region, err)
	}
	return nil
}

// RemoveRegion removes a region that accepts no writes. Requests to it are refused with
// 403/1008. The account still advertises it until AdvertiseRegions.
func (s *Server) RemoveRegion(region string) error {
	i, err := s.region(region)
	if err == nil && s.options.MultipleWriteRegions {
		err = refuse(400, "a region of an account with several write regions cannot be removed in this emulator")
	}
	if err == nil {
		err = s.regions.remove(i)
	}
	if err != nil {
		return fmt.Errorf("cosmosemu: remove the region %q: %w", region, err)
	}
	return nil
}

// AdvertiseRegions makes the account list the regions as FailOver and RemoveRegion left them.
func (s *Server) AdvertiseRegions() { s.regions.advertise() }

func (s *Server) region(name string) (int, error) {
	i := slices.Index(s.options.Regions, name)
	if i < 0 {
		return 0, refuse(400, "the account has the regions %q", s.options.Regions)
	}
	return i, nil
}
