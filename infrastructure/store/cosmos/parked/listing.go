package parked

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// The closed keys are listed in one logical partition, a small document for each, so
// that a new owner of a range finds all of them behind one write of its own; see
// the package documentation. The list may name keys that are open, never the other way around.
const (
	listingPartition = "$closed"
	typeListing      = "closedKey"
	fenceID          = "$fence"
	typeFence        = "fence"
)

// listingDocument is the entry of a closed key, or the fence, which has no key.
type listingDocument struct {
	ID           string    `json:"id"`
	PartitionKey string    `json:"partitionKey"`
	Type         string    `json:"type"`
	Key          string    `json:"key,omitempty"`
	At           time.Time `json:"at,omitzero"`
}

// listingID is the id of a key's entry. A key may hold what an id may not.
func listingID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// list enters key, which is about to be closed, and returns the ETag of the entry. Each
// closing writes the entry anew: whoever opens the gate of an earlier one does not take
// this one's entry away.
func (l *Lot) list(ctx context.Context, key string, at time.Time) (string, error) {
	reply, err := l.putListing(ctx, listingDocument{
		ID: listingID(key), PartitionKey: listingPartition, Type: typeListing, Key: key, At: at,
	})
	return string(reply.ETag), err
}

func (l *Lot) putListing(ctx context.Context, d listingDocument) (azcosmos.ItemResponse, error) {
	what := "list the parked key " + d.Key
	body, err := json.Marshal(d)
	if err != nil {
		return azcosmos.ItemResponse{}, fmt.Errorf("%s: %w", what, err)
	}
	reply, err := l.container.UpsertItem(ctx, azcosmos.NewPartitionKeyString(listingPartition), body, nil)
	if err != nil {
		return azcosmos.ItemResponse{}, store.AsFault(what, err)
	}
	l.sawReply(reply.SessionToken)
	return reply, nil
}

// unlist takes the entry of key away if it is the one with this ETag. If that fails, the
// list names an open key, which it may.
func (l *Lot) unlist(ctx context.Context, key, etag string) {
	if etag == "" {
		return
	}
	tag := azcore.ETag(etag)
	reply, err := l.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(listingPartition), listingID(key), &azcosmos.ItemOptions{IfMatchEtag: &tag})
	if err == nil {
		l.sawReply(reply.SessionToken)
	}
}

// Times of the list. A process that stops between the entry and the gate leaves an entry
// behind. It is not told from that of a gate about to be closed but by its age: Park
// gives up long before an entry counts as left behind.
const (
	parkTimeout = 5 * time.Minute
	leftBehind  = time.Hour
)

// sweep takes away the entry of a key whose gate was found open, if it was left behind.
func (l *Lot) sweep(ctx context.Context, key string, now time.Time) {
	reply, err := l.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(listingPartition), listingID(key), &azcosmos.ItemOptions{SessionToken: l.seen()})
	if err != nil {
		return // no entry, or one for a later visit
	}
	var d listingDocument
	if json.Unmarshal(reply.Value, &d) == nil && now.Sub(d.At) > leftBehind {
		l.unlist(ctx, key, string(reply.ETag))
	}
}

// Closed implements relay.ParkedStore. It writes before it reads: the answer to the write carries
// the position of the listing partition, and every entry that was made before the call
// lies before it. The query is bound to that position, so no replica that is behind may
// answer. Gates without an entry, from before there were entries, are looked for as well.
func (l *Lot) Closed(ctx context.Context) ([]string, error) {
	fence, err := l.putListing(ctx, listingDocument{ID: fenceID, PartitionKey: listingPartition, Type: typeFence})
	if err != nil {
		return nil, err
	}
	const what, query = "list parked keys", "SELECT * FROM c WHERE c.type = @type"
	position := fence.SessionToken
	if position == nil {
		return nil, fault.New(fault.Internal, "", what+": the answer to a write has no session token")
	}
	var keys []string
	listed := make(map[string]bool)
	err = l.queryAt(ctx, position, what, azcosmos.NewPartitionKeyString(listingPartition), query, typeListing, func(raw []byte) error {
		var d listingDocument
		if err := json.Unmarshal(raw, &d); err != nil {
			return fmt.Errorf("decode an entry: %w", err)
		}
		keys, listed[d.Key] = append(keys, d.Key), true
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = l.gates(ctx, what, query, func(g relay.Gate) {
		if !listed[g.Key] {
			keys = append(keys, g.Key)
		}
	})
	return keys, err
}

// gateTries bounds how often a gate is read that one replica knows and another does not.
const gateTries = 5

// Gate implements relay.DrainStore. That there is none is confirmed by the primary.
func (l *Lot) Gate(ctx context.Context, key string) (relay.Gate, error) {
	what := "read the gate of key " + key
	for range gateTries {
		reply, err := l.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(key), gateID, &azcosmos.ItemOptions{SessionToken: l.seen()})
		if err == nil {
			l.sawReply(reply.SessionToken)
			return decodeGate(reply.Value)
		}
		err = store.AsFault(what, err)
		if !fault.Is(err, fault.NotFound) {
			return relay.Gate{}, err
		}
		absent, confirmErr := l.gateIsAbsent(ctx, what, key)
		if confirmErr != nil {
			return relay.Gate{}, confirmErr
		}
		if absent {
			return relay.Gate{}, err
		}
	}
	return relay.Gate{}, fault.New(fault.Unavailable, "", what+": the replicas do not agree yet")
}

// gateIsAbsent asks by a write that never succeeds. A batch runs in order and stops at the
// first operation that is refused: at the read if there is no gate, else at the delete
// of a document that never exists. What has to delete is executed by the primary.
func (l *Lot) gateIsAbsent(ctx context.Context, what, key string) (bool, error) {
	b := l.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	b.ReadItem(gateID, nil)
	b.DeleteItem("$never", nil)
	reply, err := l.container.ExecuteTransactionalBatch(ctx, b, nil)
	if err != nil {
		l.saw(store.SessionOf(err))
		return false, store.AsFault(what, err)
	}
	l.saw(reply.SessionToken)
	if len(reply.OperationResults) != 2 {
		return false, store.AsFault(what, store.ErrNoResult)
	}
	for i, result := range reply.OperationResults {
		switch status := int(result.StatusCode); status {
		case http.StatusNotFound:
			return i == 0, nil
		case http.StatusFailedDependency:
		default:
			return false, store.StatusFault(what, status, reply.RawResponse, store.ErrRefused)
		}
	}
	return false, store.AsFault(what, store.ErrNoResult)
}
