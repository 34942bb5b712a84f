package broker

// entityRecord is the stored form of an entity. Exactly one of Queue, Topic and Subscription
// is set.
type entityRecord struct {
	ID           uint32
	Of           uint32 `json:",omitempty"` // topic of a subscription
	Name         string
	Queue        *Queue        `json:",omitempty"`
	Topic        *Topic        `json:",omitempty"`
	Partitions   int           `json:",omitempty"` // of a partitioned queue or topic
	Subscription *Subscription `json:",omitempty"`
	Times
}
