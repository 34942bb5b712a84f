package broker

// entityRecord is an entity in the store. Exactly one of Queue, Topic and Subscription
// is set.
type entityRecord struct {
	ID           uint32
	Of           uint32 `json:",omitempty"` // a subscription's topic
	Name         string
	Queue        *Queue        `json:",omitempty"`
	Topic        *Topic        `json:",omitempty"`
	Partitions   int           `json:",omitempty"` // of a partitioned queue or topic
	Subscription *Subscription `json:",omitempty"`
	Times
}
