package firestore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
)

// Records is the recordstore.Store of a database. It is safe for concurrent use.
type Records struct{ DB *DB }

// Ids of documents. The versions in the ids of audit entries are padded, so that they sort as text.
func requestID(aggregateID uuid.UUID, id string) string { return aggregateID.String() + "-" + id }

func auditID(aggregateID uuid.UUID, version int64) string {
	return fmt.Sprintf("%s-%019d", aggregateID, version)
}

// has is a member that a document must have; the zero value is none.
type has struct{ member, text string }

// one returns a document, converted by of, or NotFound if there is none or it has expired.
func one[T any](ctx context.Context, db *DB, noun, collection, id string, must has, of func(d *pb.Document) (T, error)) (none T, err error) {
	found, err := db.get(ctx, db.document(collection, id))
	switch {
	case err != nil:
		return none, asFault("read "+noun+" "+id, err)
	case !live(found[0]) || text(found[0], must.member) != must.text:
		return none, fault.Missing(noun, id)
	}
	return of(found[0])
}

func idOf(d *pb.Document) string { return d.Name[strings.LastIndexByte(d.Name, '/')+1:] }

func rowOf(d *pb.Document) (recordstore.Record, error) {
	id, err := uuid.Parse(idOf(d))
	return recordstore.Record{ID: id, Version: number(d, "version"), Data: []byte(text(d, "data")), Tag: tagOf(d)}, err
}

// Aggregate implements recordstore.Store.
func (r Records) Aggregate(ctx context.Context, kind string, id uuid.UUID) (recordstore.Record, error) {
	return one(ctx, r.DB, kind, collectionAggregates, id.String(), has{"type", kind}, rowOf)
}

// Aggregates implements recordstore.Store.
func (r Records) Aggregates(ctx context.Context, kind string, after uuid.UUID, limit int) ([]recordstore.Record, error) {
	q := find(collectionAggregates, byName, limit, condition{"listed", equal, kind}, condition{byName, above, reference(r.DB.document(collectionAggregates, after.String()))})
	return all(ctx, r.DB, "read a page of type "+kind, q, rowOf)
}

// Earlier implements recordstore.Store. It need not check that the aggregate has expired, because
// until then the creation is refused.
func (r Records) Earlier(ctx context.Context, id uuid.UUID) (aggregate.Tombstone, error) {
	return one(ctx, r.DB, "tombstone", collectionTombstones, id.String(), has{}, func(d *pb.Document) (aggregate.Tombstone, error) {
		return aggregate.Tombstone{ID: id, Version: number(d, "version"), Sequence: number(d, "sequence")}, nil
	})
}

// Request implements recordstore.Store.
func (r Records) Request(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	return one(ctx, r.DB, "request", collectionRequests, requestID(aggregateID, id), has{}, func(d *pb.Document) (command.Request, error) {
		by, err := uuid.Parse(text(d, "command"))
		return command.Request{ID: id, AggregateID: aggregateID, Hash: text(d, "hash"), CommandID: by, CreatedAt: moment(d, "created"), Version: number(d, "version")}, err
	})
}

// Audits implements recordstore.Store. The limit of a query counts expired entries too, and they
// precede the others, so it queries on until it has enough.
func (r Records) Audits(ctx context.Context, id uuid.UUID, after int64, limit int) (entries []query.AuditEntry, err error) {
	what, last := "read the audit trail of "+id.String(), r.DB.document(collectionAudits, auditID(id, after))
	for read := limit; read == limit && len(entries) < limit; {
		read = 0
		var wrong error
		q := find(collectionAudits, byName, limit, condition{"aggregate", equal, id.String()}, condition{byName, above, reference(last)})
		err := r.DB.scan(ctx, q, time.Time{}, func(d *pb.Document) bool {
			read++
			if last = d.Name; live(d) && len(entries) < limit {
				e := query.AuditEntry{AggregateID: id, Version: number(d, "version"), At: moment(d, "time"), Principal: text(d, "principal")}
				wrong = json.Unmarshal([]byte(text(d, "events")), &e.Events)
				entries = append(entries, e)
			}
			return wrong == nil
		})
		switch {
		case wrong != nil:
			return nil, fmt.Errorf("%s: decode: %w", what, wrong)
		case err != nil:
			return nil, asFault(what, err)
		}
	}
	return entries, nil
}
