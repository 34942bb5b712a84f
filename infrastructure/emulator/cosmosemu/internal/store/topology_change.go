package store

// Split divides a physical partition at a key, in the middle if at is nil. It moves no
// documents: see the package comment.
func (s *Store) Split(c *Container, id string, at []byte) error {
	return s.changeTopology(c, func(t *Topology) (*Topology, error) { return t.split(c.Definition().Hash(), id, at) })
}

// Merge joins two adjacent physical partitions.
func (s *Store) Merge(c *Container, left, right string) error {
	return s.changeTopology(c, func(t *Topology) (*Topology, error) { return t.merge(left, right) })
}

// changeTopology changes the ranges while no writer is active, and after all writes are
// visible: see the package comment.
func (s *Store) changeTopology(c *Container, change func(*Topology) (*Topology, error)) error {
	return s.changeContainer(c, func(next *containerState) (err error) {
		for i := range next.Topology.Ranges {
			if n := next.Topology.Ranges[i].counter; !n.settled() {
				if err := s.acknowledge(n); err != nil {
					return err
				}
			}
		}
		next.Topology, err = change(next.Topology)
		return err
	})
}
