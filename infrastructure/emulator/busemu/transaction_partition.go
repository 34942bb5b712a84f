package busemu

import "feedbox/infrastructure/emulator/busemu/internal/broker"

// A transaction stays in one partition of a partitioned entity. The service compares
// partitions. The emulator also compares keys, because two keys that share a partition here
// may not share one at the service.

// mayBeIn refuses to send a message without a partition key in a transaction.
func mayBeIn(p broker.Partition) error {
	if p.Entity == "" || p.HasKey {
		return nil
	}
	return &broker.Error{Condition: broker.NotAllowed, Description: "A message that is sent in a transaction to the partitioned entity '" + p.Entity +
		"' needs a partition key or a session id: all of them must be of one partition."}
}

// keepTo records a message's partition, or refuses one that differs from that of earlier
// messages.
func (t *transaction) keepTo(p broker.Partition) error {
	if p.Entity == "" {
		return nil
	}
	first, known := t.partitions[p.Entity]
	switch {
	case known && first.Differs(p):
		return &broker.Error{Condition: broker.NotAllowed, Description: "Local transactions cannot span multiple entities or partitions. " +
			"Give all messages to '" + p.Entity + "' in one transaction the same session id or partition key."}
	case known && first.HasKey:
		return nil
	case t.partitions == nil:
		t.partitions = make(map[string]broker.Partition)
	}
	t.partitions[p.Entity] = p
	return nil
}
