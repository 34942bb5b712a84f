package parked

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// The closed keys are listed in one logical partition, a small document for each, so that a new
// owner of a range finds all of them after one write of its own; see the package documentation.
// The list may contain open keys, but every closed key is in it.
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

// listingID returns the id of a key's entry: a hash, because a key may contain characters that an
// id must not have.
func listingID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// list writes the entry of key, which is about to be closed, and returns its ETag. Each closing
// writes the entry again, so that opening an earlier gate does not delete it.
func (s *Store) list(ctx context.Context, key string, at time.Time) (string, error) {
	reply, err := s.putListing(ctx, listingDocument{
		ID: listingID(key), PartitionKey: listingPartition + s.scope, Type: s.kind(typeListing), Key: key, At: at,
	})
	return string(reply.ETag), err
}

func (s *Store) putListing(ctx context.Context, d listingDocument) (azcosmos.ItemResponse, error) {
	what := "list the parked key " + d.Key
	body, err := json.Marshal(d)
	if err != nil {
		return azcosmos.ItemResponse{}, fmt.Errorf("%s: %w", what, err)
	}
	reply, err := s.container.UpsertItem(ctx, azcosmos.NewPartitionKeyString(listingPartition+s.scope), body, nil)
	if err != nil {
		return azcosmos.ItemResponse{}, store.AsFault(what, err)
	}
	s.mergeReply(reply.SessionToken)
	return reply, nil
}

// unlist deletes the entry of key if it has this ETag. Errors are ignored, because the list may
// contain open keys.
func (s *Store) unlist(ctx context.Context, key, etag string) {
	if etag == "" {
		return
	}
	tag := azcore.ETag(etag)
	reply, err := s.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(listingPartition+s.scope), listingID(key), &azcosmos.ItemOptions{IfMatchEtag: &tag})
	if err == nil {
		s.mergeReply(reply.SessionToken)
	}
}

// Times of the list. A process that stops between the entry and the gate leaves an unused entry.
// Only its age distinguishes it from the entry of a gate that is about to be closed, so unusedFor
// must be much longer than Park may take.
const (
	parkTimeout = 5 * time.Minute
	unusedFor   = time.Hour
)

// sweep deletes the entry of a key with an open gate if the entry is unused.
func (s *Store) sweep(ctx context.Context, key string, now time.Time) {
	reply, err := s.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(listingPartition+s.scope), listingID(key), &azcosmos.ItemOptions{SessionToken: s.sessionToken()})
	if err != nil {
		return // no entry, or a later call deletes it
	}
	var d listingDocument
	if json.Unmarshal(reply.Value, &d) == nil && now.Sub(d.At) > unusedFor {
		s.unlist(ctx, key, string(reply.ETag))
	}
}

// Closed implements relay.ParkedStore. It writes before it reads: the answer to the write has the
// position of the listing partition, which every earlier entry precedes. The query requires that
// position, so no lagging replica may answer. Gates of earlier versions have no entry and are
// queried as well.
func (s *Store) Closed(ctx context.Context) ([]string, error) {
	fence, err := s.putListing(ctx, listingDocument{ID: fenceID, PartitionKey: listingPartition + s.scope, Type: typeFence})
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
	err = s.queryAt(ctx, position, what, azcosmos.NewPartitionKeyString(listingPartition+s.scope), query, typeListing, func(raw []byte) error {
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
	err = s.gates(ctx, what, query, func(g relay.Gate) {
		if !listed[g.Key] {
			keys = append(keys, g.Key)
		}
	})
	return keys, err
}

// gateTries is the maximum number of reads of a gate on which replicas disagree.
const gateTries = 5

// Gate implements relay.DrainStore. The primary confirms that there is no gate.
func (s *Store) Gate(ctx context.Context, key string) (relay.Gate, error) {
	what := "read the gate of key " + key
	for range gateTries {
		reply, err := s.container.ReadItem(ctx, s.partition(key), gateID, &azcosmos.ItemOptions{SessionToken: s.sessionToken()})
		s.noteRead(what, err)
		if err == nil {
			s.mergeReply(reply.SessionToken)
			g, err := decodeGate(reply.Value)
			g.Key = key
			return g, err
		}
		err = store.AsFault(what, err)
		if !fault.Is(err, fault.NotFound) {
			return relay.Gate{}, err
		}
		absent, confirmErr := s.gateIsAbsent(ctx, what, key)
		if confirmErr != nil {
			return relay.Gate{}, confirmErr
		}
		if absent {
			return relay.Gate{}, err
		}
	}
	return relay.Gate{}, fault.New(fault.Unavailable, "", what+": the replicas do not agree yet")
}

// gateIsAbsent asks the primary by a batch that never succeeds. The batch stops at the first
// refused operation: at the read if there is no gate, otherwise at the deletion of a document
// that never exists. The deletion forces the batch to the primary.
func (s *Store) gateIsAbsent(ctx context.Context, what, key string) (bool, error) {
	b := s.container.NewTransactionalBatch(s.partition(key))
	b.ReadItem(gateID, nil)
	b.DeleteItem(neverID, nil)
	reply, err := s.container.ExecuteTransactionalBatch(ctx, b, nil)
	if err != nil {
		s.mergeSession(store.SessionOf(err))
		refused, ok := errors.AsType[*azcore.ResponseError](err)
		if err = store.AsFault(what, err); ok && refused.StatusCode == http.StatusForbidden && fault.Is(err, fault.Internal) {
			err = fault.Wrap(fault.Internal, relay.CodeGateUnconfirmed, "the identity may only read, so it cannot confirm that the key is not parked", err)
		}
		return false, err
	}
	s.mergeSession(reply.SessionToken)
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

// Gates returns all closed gates in the order in which they were closed.
func (s *Store) Gates(ctx context.Context) ([]relay.Gate, error) {
	var gates []relay.Gate
	err := s.gates(ctx, "list gates", "SELECT * FROM c WHERE c.type = @type", func(g relay.Gate) { gates = append(gates, g) })
	slices.SortFunc(gates, func(a, b relay.Gate) int { return a.Closing.At.Compare(b.Closing.At) })
	return gates, err
}

// SetIntent stores the intent of an operator in the gate of key and replaces an earlier one. A
// relay executes it; see relay.Drainer. Fault: NotFound if the gate is open.
func (s *Store) SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error) {
	for {
		g, err := s.Gate(ctx, key)
		if err != nil {
			return relay.Gate{}, err
		}
		g.Intent = &intent
		g, err = s.Update(ctx, g)
		if !fault.Is(err, fault.PreconditionFailed) || ctx.Err() != nil {
			return g, err
		}
	}
}

// Consumers returns the names of the consumers with parked keys in the container, sorted.
func (s *Store) Consumers(ctx context.Context) (names []string, err error) {
	const prefix = typeGate + ":" // of the types of gates of consumers
	err = s.query(ctx, "list consumers with parked keys", everyKey, "SELECT c.type FROM c WHERE STARTSWITH(c.type, @type)", prefix, func(raw []byte) error {
		var found struct{ Type string }
		err := json.Unmarshal(raw, &found)
		names = append(names, strings.TrimPrefix(found.Type, prefix))
		return err
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// Skipped returns the records of the skipped events of key, in their order.
func (s *Store) Skipped(ctx context.Context, key string) ([]relay.Skipped, error) {
	var skipped []relay.Skipped
	err := s.query(ctx, "read skipped events of key "+key, s.partition(key), "SELECT * FROM c WHERE c.type = @type ORDER BY c.position", typeSkippedEvent,
		func(raw []byte) error {
			e, intent, err := decodeParked(raw)
			e.Key = key
			if err == nil && intent != nil {
				skipped = append(skipped, relay.Skipped{Event: e, Intent: *intent})
			}
			return err
		})
	return skipped, err
}

// SkippedAmong returns those of the events that were skipped. It costs one query of the index in each
// physical partition.
func (s *Store) SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error) {
	skipped, ids, asked := map[relay.EventRef]bool{}, make([]string, len(events)), map[relay.EventRef]relay.EventRef{}
	for i, e := range events {
		ids[i] = skippedID(e.ID)
		asked[relay.EventRef{Key: e.Key, ID: ids[i]}] = e
	}
	err := s.query(ctx, "find skipped events", azcosmos.NewPartitionKey(), "SELECT c.id, c.partitionKey FROM c WHERE c.type = @type AND ARRAY_CONTAINS(@ids, c.id)", typeSkippedEvent,
		func(raw []byte) error {
			var found struct{ ID, PartitionKey string }
			err := json.Unmarshal(raw, &found)
			if e, is := asked[relay.EventRef{Key: s.key(found.PartitionKey), ID: found.ID}]; is {
				skipped[e] = true
			}
			return err
		}, azcosmos.QueryParameter{Name: "@ids", Value: ids})
	return skipped, err
}
