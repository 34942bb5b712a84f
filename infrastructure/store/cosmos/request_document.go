package cosmos

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/internal/jsontext"
)

// requestData is the data of the note about a request. It holds hashes of the request's content
// and key, not the values.
type requestData struct {
	Hash      string    `json:"hash"`
	CommandID uuid.UUID `json:"commandId"`
	CreatedAt time.Time `json:"createdAt"`
	Version   int64     `json:"version"`
}

// requestDocumentID returns an id that differs from those of aggregates and events, which are
// UUIDs.
func requestDocumentID(id string) string { return "request-" + id }

func encodeRequest(r command.Request, idMember string, ttl time.Duration) (DataObject, error) {
	data, err := marshalWithID(idMember, r.AggregateID, requestData{Hash: r.Hash, CommandID: r.CommandID, CreatedAt: r.CreatedAt, Version: r.Version})
	if err != nil {
		return DataObject{}, fmt.Errorf("encode request: %w", err)
	}
	key := partitionKeyOf(r.AggregateID)
	return DataObject{ID: requestDocumentID(r.ID), PartitionKey: key, Type: document.TypeRequest, Data: data, TTL: seconds(ttl)}, nil
}

// marshalWithID returns the object v with the id of an aggregate as its first member.
func marshalWithID(idMember string, id uuid.UUID, v any) ([]byte, error) {
	rest, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	w := jsontext.Extend(append(make([]byte, 0, len(rest)+dataRoom), '{'))
	w.UUID(idMember, id)
	data, err := w.Done()
	return append(append(data, ','), rest[1:]...), err
}

func decodeRequest(id string, aggregateID uuid.UUID, o DataObject) (command.Request, error) {
	var data requestData
	if err := json.Unmarshal(o.Data, &data); err != nil {
		return command.Request{}, fmt.Errorf("decode request: %w", err)
	}
	return command.Request{ID: id, AggregateID: aggregateID, Hash: data.Hash, CommandID: data.CommandID, CreatedAt: data.CreatedAt, Version: data.Version}, nil
}
