package changefeed

import "strings"

// Record ids, after the .NET SDK's processor (DocumentServiceLeaseStoreManager-
// Cosmos). Resource ids contain no dot and a processor's name must not either,
// so that no prefix of one processor is a prefix of another's records.
const (
	leaseInfix  = ".." // {prefix}..{token}: a lease
	infoSuffix  = ".info"
	hostInfix   = ".host." // {prefix}.host.{name}.{incarnation}: a heartbeat
	pauseSuffix = ".pause"
)

// recordIDs makes the ids of one processor's records.
type recordIDs struct{ prefix string }

func newRecordIDs(processor string, s Source) recordIDs {
	return recordIDs{prefix: processor + s.Host + "_" + s.Database + "_" + s.Container}
}

// all is the prefix of every record, and of no other processor's.
func (n recordIDs) all() string { return n.prefix + "." }

func (n recordIDs) lease(r FeedRange) string { return n.prefix + leaseInfix + r.String() }
func (n recordIDs) info() string             { return n.prefix + infoSuffix }
func (n recordIDs) pause() string            { return n.prefix + pauseSuffix }

func (n recordIDs) host(name, incarnation string) string {
	return n.prefix + hostInfix + name + "." + incarnation
}

func (n recordIDs) isLease(id string) bool { return strings.HasPrefix(id, n.prefix+leaseInfix) }
func (n recordIDs) isHost(id string) bool  { return strings.HasPrefix(id, n.prefix+hostInfix) }
