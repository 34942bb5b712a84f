package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// Editable returns a document without the members that the store adds, and its ETag.
func (s EventStore) Editable(document []byte) (clean []byte, version string, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return nil, "", fmt.Errorf("the stored document: %w", err)
	}
	if err := json.Unmarshal(members["_etag"], &version); err != nil {
		return nil, "", fmt.Errorf("the ETag of the stored document: %w", err)
	}
	for name := range members {
		if strings.HasPrefix(name, "_") {
			delete(members, name)
		}
	}
	clean, err = json.Marshal(members)
	return clean, version, err
}

// Replace replaces an event if it still has the ETag version; its lifetime starts again. Faults:
// PreconditionFailed, NotFound, and Conflict with the code "forbidden" for an identity that may
// not write.
func (s EventStore) Replace(ctx context.Context, key, id string, document []byte, version string) error {
	etag := azcore.ETag(version)
	_, err := s.container.ReplaceItem(ctx, keyValue(key), id, document, &azcosmos.ItemOptions{IfMatchEtag: &etag})
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok && reply.StatusCode == http.StatusForbidden && store.RegionOf(err) == "" {
		return fault.Wrap(fault.Conflict, "forbidden",
			"this process may not write events: give its identity the role Cosmos DB Built-in Data Contributor on the container, or correct the document with another tool", err)
	}
	return store.AsFault("replace event "+id+" of key "+key, err)
}
