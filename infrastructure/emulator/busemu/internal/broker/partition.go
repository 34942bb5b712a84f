package broker

import (
	"hash/fnv"
)

// The messages of a partitioned entity are spread over partitions: in the queue or each of the
// topic's subscriptions, and in their dead-letter queues. Each partition has its own sequence
// numbers, index table and ready list, so that order holds within a partition only. Copies for
// subscriptions, dead letters and due scheduled messages stay in the partition of their
// message. The target of forwarding assigns partitions again.
//
// The upper 16 bits of a sequence number are the partition. They are zero in an entity that is
// not partitioned; it has one partition and no extra cost.

// partitionKey returns the key that determines a message's partition: session id, partition
// key, or with duplicate detection the message id. ok is false if it has none.
func (in *inlet) partitionKey(m *Message) (key string, ok bool) {
	switch {
	case m.HasSession:
		return m.SessionID, true
	case m.PartitionKey == "" && in.history != nil:
		return m.MessageID, m.MessageID != ""
	}
	return m.PartitionKey, m.PartitionKey != ""
}

// partition returns the partition of a batch, which has one key or none. Batches without key
// go to the partitions in turn. Called with in.mu.
func (in *inlet) partition(batch []Message) int {
	if in.partitions == 1 {
		return 0
	}
	if key, ok := in.partitionKey(&batch[0]); ok {
		return in.partitionOfKey(key)
	}
	in.turn = (in.turn + 1) % in.partitions
	return in.turn
}

// partitionOfKey maps a key to a partition. The mapping is fixed while the entity exists.
func (in *inlet) partitionOfKey(key string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key)) // never fails
	return int(sum.Sum32() % uint32(in.partitions))
}

// checkPartition refuses a batch over several partitions of a partitioned entity.
func (in *inlet) checkPartition(batch []Message) error {
	if !in.partitioned {
		return nil
	}
	first, hasKey := in.partitionKey(&batch[0])
	for i := range batch {
		if key, ok := in.partitionKey(&batch[i]); key != first || ok != hasKey {
			return errorf(NotAllowed, "Batching brokered messages with distinct SessionId or PartitionKey is not supported for an entity with partitioning enabled.")
		}
	}
	return nil
}

// recorded returns the number of partitions for the entity's record.
func (in *inlet) recorded() int {
	if !in.partitioned {
		return 0
	}
	return in.partitions
}

// partitionOfBatch returns the partition to which a batch goes.
func (in *inlet) partitionOfBatch(batch []Message) (p Partition) {
	if !in.partitioned {
		return p
	}
	p.Entity = in.path
	if p.key, p.HasKey = in.partitionKey(&batch[0]); p.HasKey {
		p.number = in.partitionOfKey(p.key)
	}
	return p
}

// partitionOfMessage returns the partition of a message.
func (in *inlet) partitionOfMessage(m *message) (p Partition) {
	if !in.partitioned {
		return p
	}
	p.Entity, p.number = in.path, partitionOf(m.sequence)
	p.key, p.HasKey = in.partitionKey(&Message{
		MessageID: m.body.id, SessionID: m.body.session, HasSession: m.body.hasSession, PartitionKey: m.body.partition,
	})
	return p
}
