package changefeed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Record ids, after the .NET SDK's processor (DocumentServiceLeaseStoreManager-
// Cosmos). Resource ids contain no dot and a processor's name must not either,
// so that no prefix of one processor is a prefix of another's records.
const (
	infoSuffix  = ".info"
	hostInfix   = ".host." // {prefix}.host.{name}.{incarnation}: a heartbeat
	pauseSuffix = ".pause"
)

// recordIDs makes the ids of one processor's records.
type recordIDs struct{ prefix string }

// identify asks which container the feed reads: the ids of all records follow from it.
// prefixHost, if any, stands for the account's host.
func identify(ctx context.Context, feed Feed, processor, prefixHost string) (recordIDs, error) {
	s, err := feed.Source(ctx)
	if err != nil {
		return recordIDs{}, fmt.Errorf("identify the container: %w", err)
	}
	return recordIDs{prefix: processor + cmp.Or(prefixHost, s.Host) + "_" + s.Database + "_" + s.Container}, nil
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

// leaseInfix is between the prefix and the token in a lease's id.
const leaseInfix = ".."

// nameLength is that of a lease's short name, in hexadecimal digits.
const nameLength = 8

// LeaseName is the short name of a lease, for people: eight hexadecimal digits that stand
// for its token, and so for its feed range, as long as the lease lives, in logs, metrics
// and commands alike. It takes the lease's id or its token; that of "" is "". Two leases of one processor
// can have the same name, if by a chance of one in four thousand million.
func LeaseName(idOrToken string) string {
	if idOrToken == "" {
		return ""
	}
	token := idOrToken
	if i := strings.LastIndex(token, leaseInfix); i >= 0 {
		token = token[i+len(leaseInfix):]
	}
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])[:nameLength]
}

// hostKey identifies a running host: name and incarnation. Two processes with
// one name have different keys.
type hostKey string

func newHostKey(name, incarnation string) hostKey {
	if name == "" {
		return "" // whatever another product left behind of an owner
	}
	return hostKey(name + "/" + incarnation)
}

// name is the part of the key users gave.
func (h hostKey) name() string {
	name, _, _ := strings.Cut(string(h), "/")
	return name
}
