package changefeed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Record ids follow the .NET SDK's processor (DocumentServiceLeaseStoreManagerCosmos).
// Resource ids contain no dot and a processor's name must not either, because otherwise a
// prefix of one processor could be a prefix of another's records.
const (
	infoSuffix  = ".info"
	hostInfix   = ".host." // {prefix}.host.{name}.{incarnation}: a heartbeat
	pauseSuffix = ".pause"
)

// recordIDs makes the ids of one processor's records.
type recordIDs struct{ prefix string }

// identify asks the feed for its container. The ids of all records derive from it.
// prefixHost, if any, replaces the account's host.
func identify(ctx context.Context, feed Feed, processor, prefixHost string) (Source, recordIDs, error) {
	s, err := feed.Source(ctx)
	if err != nil {
		return s, recordIDs{}, fmt.Errorf("identify the container: %w", err)
	}
	return s, recordIDs{prefix: processor + cmp.Or(prefixHost, s.Host) + "_" + s.Database + "_" + s.Container}, nil
}

// all returns the prefix of every record, and of no other processor's.
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

// nameLength is the length of a lease's short name, in hexadecimal digits.
const nameLength = 8

// LeaseName returns the short name of a lease for humans: eight hexadecimal digits derived
// from its token. Logs, metrics and commands use the same name. The argument is the lease's
// id or its token; the name of "" is "". The probability that two given leases share a name
// is one in four thousand million.
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

// hostKey identifies a running host: name and incarnation, because two processes may have
// one name.
type hostKey string

func newHostKey(name, incarnation string) hostKey {
	if name == "" {
		return "" // another product may leave an incarnation behind without an owner
	}
	return hostKey(name + "/" + incarnation)
}

// name returns the part of the key that the user gave.
func (h hostKey) name() string {
	name, _, _ := strings.Cut(string(h), "/")
	return name
}
