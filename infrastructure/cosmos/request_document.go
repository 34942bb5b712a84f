package cosmos

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
)

// typeRequest is the type of the documents that remember answered requests.
const typeRequest = "request"

// requestData is the data of such a document. It holds nothing of the request's
// content or key, only hashes.
type requestData struct {
	ContactID uuid.UUID `json:"contactId"`
	Hash      string    `json:"hash"`
	CommandID uuid.UUID `json:"commandId"`
	CreatedAt time.Time `json:"createdAt"`
	Version   int64     `json:"version"`
}

// requestDocumentID keeps the ids of these documents apart from those of contacts
// and events, which are UUIDs.
func requestDocumentID(id string) string { return "request-" + id }

func encodeRequest(r command.Request, ttl time.Duration) (DataObject, error) {
	data, err := json.Marshal(requestData{ContactID: r.ContactID, Hash: r.Hash, CommandID: r.CommandID, CreatedAt: r.CreatedAt, Version: r.Version})
	if err != nil {
		return DataObject{}, fmt.Errorf("encode request: %w", err)
	}
	key := partitionKeyOf(r.ContactID)
	return DataObject{ID: requestDocumentID(r.ID), PartitionKey: key, Type: typeRequest, Data: data, TTL: seconds(ttl)}, nil
}

func decodeRequest(id string, o DataObject) (command.Request, error) {
	var data requestData
	if err := json.Unmarshal(o.Data, &data); err != nil {
		return command.Request{}, fmt.Errorf("decode request: %w", err)
	}
	return command.Request{ID: id, ContactID: data.ContactID, Hash: data.Hash, CommandID: data.CommandID, CreatedAt: data.CreatedAt, Version: data.Version}, nil
}
