package broker

import (
	"hash/fnv"
)

// The messages of a partitioned entity are spread over partitions, in the queue or in
// each of the topic's subscriptions, and in their dead-letter queues. Each partition
// numbers its messages by itself, and has a table of the index and a ready list of its
// own: order is kept in a partition, not between two. What a message becomes (the copy of
// a subscription, a dead letter, a scheduled message whose time has come) stays in its
// partition. Messages that are forwarded to another entity are spread anew there.
//
// The upper 16 bits of a sequence number are the partition. In an entity that is not
// partitioned they are zero: it has one partition, and all of this costs it nothing.

// partitionKey is what decides on a message's partition: session id, partition key, or
// with duplicate detection the message id; ok is false if it has none of them.
func (in *inlet) partitionKey(m *Message) (key string, ok bool) {
	switch {
	case m.HasSession:
		return m.SessionID, true
	case m.PartitionKey == "" && in.history != nil:
		return m.MessageID, m.MessageID != ""
	}
	return m.PartitionKey, m.PartitionKey != ""
}

// partition chooses the partition of a batch whose messages have one key or none: those
// without take turns. Called with in.mu.
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

// partitionOfKey is the same for as long as the entity lives.
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

// recorded is the number of partitions as an entity's record has it.
func (in *inlet) recorded() int {
	if !in.partitioned {
		return 0
	}
	return in.partitions
}

// partitionOfBatch is where a batch goes.
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

// partitionOfMessage is where a message lies.
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
