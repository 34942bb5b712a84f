package broker

import (
	"sync/atomic"
)

const (
	partitionShift    = 48
	defaultPartitions = 16
	// MaxPartitions limits Options.Partitions.
	MaxPartitions = 256
)

// numbering assigns the sequence numbers of one holder.
type numbering struct {
	id        uint32         // the holder's, in the store
	sequences []atomic.Int64 // the last ones assigned, one for each partition
}

func partitionOf(sequence int64) int { return int(sequence >> partitionShift) }

// nextSequence assigns the next sequence number of a partition.
func (n *numbering) nextSequence(partition int) int64 {
	return int64(partition)<<partitionShift | n.sequences[partition].Add(1)
}

// wasGiven reports whether a number has been assigned, perhaps to a message that was removed.
func (n *numbering) wasGiven(sequence int64) bool {
	p := partitionOf(sequence)
	return p >= 0 && p < len(n.sequences) && sequence&(1<<partitionShift-1) <= n.sequences[p].Load()
}
