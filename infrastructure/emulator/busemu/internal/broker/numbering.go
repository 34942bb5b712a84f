package broker

import (
	"sync/atomic"
)

const (
	partitionShift    = 48
	defaultPartitions = 16
	// MaxPartitions bounds Options.Partitions.
	MaxPartitions = 256
)

// numbering gives out the sequence numbers of one holder.
type numbering struct {
	id        uint32         // the holder's, in the store
	sequences []atomic.Int64 // the last ones given out, one for each partition
}

func partitionOf(sequence int64) int { return int(sequence >> partitionShift) }

// nextSequence gives out the next sequence number of a partition.
func (n *numbering) nextSequence(partition int) int64 {
	return int64(partition)<<partitionShift | n.sequences[partition].Add(1)
}

// wasGiven reports whether a number was given out, perhaps to a message that is gone.
func (n *numbering) wasGiven(sequence int64) bool {
	p := partitionOf(sequence)
	return p >= 0 && p < len(n.sequences) && sequence&(1<<partitionShift-1) <= n.sequences[p].Load()
}
