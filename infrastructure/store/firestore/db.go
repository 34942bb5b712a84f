package firestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	client "cloud.google.com/go/firestore/apiv1"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// DB is a Firestore database. It is safe for concurrent use.
type DB struct {
	client  *client.Client
	name    string // projects/{project}/databases/{database}
	source  string // the database in the names of leases
	headers []string
	settle  time.Duration
	timeout time.Duration
	used    func(err error)
}

// settling is the delay of the feed on Google's emulator, which makes commits visible after their
// time and out of order. The service makes a commit visible to every read at its time or later.
const settling = time.Second

// Options are the options of Open. All except Project have defaults.
type Options struct {
	// Project is the id of the Google Cloud project. Required.
	Project string
	// Database is the id of the database. Default "(default)".
	Database string
	// Emulator is the address of Google's emulator, host:port. Default: the service, with the
	// application default credentials.
	Emulator string
	// Timeout bounds the wait for each message of a reply. It does not bound a whole reply, because
	// a query may return thousands of documents over a slow link. A document of 1 MiB needs
	// 0.6 Mbit/s. Default 15 s. Commits have a fixed limit of 10 s.
	Timeout time.Duration
	// Used is called after each use of the database, with its error. Default: none.
	Used func(err error)
	// Client are additional options of Google's client.
	Client []option.ClientOption
}

// The collections. firestore.indexes.json refers to these names.
const (
	collectionAggregates    = "feedboxAggregates"
	collectionTombstones    = "feedboxTombstones"
	collectionEvents        = "feedboxEvents"
	collectionRequests      = "feedboxRequests"
	collectionAudits        = "feedboxAudits"
	collectionLeases        = "feedboxLeases"
	collectionGates         = "feedboxGates"
	collectionConsumerGates = "feedboxConsumerGates"
	collectionParked        = "feedboxParked"
	collectionSkipped       = "feedboxSkipped"
)

// Open returns a DB, which connects when it is used. The caller must close it.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Project == "" {
		return nil, errors.New("firestore: the id of the project is missing")
	}
	database := cmp.Or(o.Database, "(default)")
	db := &DB{name: "projects/" + o.Project + "/databases/" + database, source: o.Project + "." + strings.Trim(database, "()"), used: o.Used, timeout: cmp.Or(o.Timeout, 15*time.Second)}
	if db.used == nil {
		db.used = func(error) {}
	}
	db.headers = []string{"google-cloud-resource-prefix", db.name}
	options := append([]option.ClientOption{option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepAlive))}, o.Client...)
	if o.Emulator != "" {
		db.settle = settling
		db.headers = append(db.headers, "authorization", "Bearer owner") // as Google's own clients do
		options = append([]option.ClientOption{
			option.WithEndpoint(o.Emulator), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		}, options...)
	}
	var err error
	if db.client, err = client.NewClient(ctx, options...); err != nil {
		return nil, fmt.Errorf("firestore: %w", err)
	}
	db.client.CallOptions.Commit = nil // otherwise it repeats a commit whose outcome is unknown
	return db, nil
}

// Close ends the connections.
func (db *DB) Close() { _ = db.client.Close() }

func (db *DB) document(collection, id string) string {
	return db.name + "/documents/" + collection + "/" + id
}

func (db *DB) outgoing(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, db.headers...)
}

// commitLimit is the deadline of a commit, which the request carries to the service. The feed
// relies on it, see window.
const commitLimit = 10 * time.Second

// commit stores all writes or none, and returns the new tag of the first document.
func (db *DB) commit(ctx context.Context, writes ...*pb.Write) (tag string, err error) {
	ctx, cancel := context.WithTimeout(db.outgoing(ctx), commitLimit)
	defer cancel()
	reply, err := db.client.Commit(ctx, &pb.CommitRequest{Database: db.name, Writes: writes})
	if db.failed(ctx, &err) {
		return "", err
	}
	return tagOf(reply.WriteResults[0]), nil
}

// each calls visit for the replies of a stream until it returns false.
func each[T any](w *watch, stream interface{ Recv() (T, error) }, err error, visit func(reply T) bool) error {
	for err == nil {
		var reply T
		if reply, err = stream.Recv(); err == nil && w.more() && !visit(reply) {
			return nil
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// get reads documents by name in one snapshot. The result is nil for a missing document and for an
// empty name.
func (db *DB) get(ctx context.Context, names ...string) ([]*pb.Document, error) {
	ctx, w := db.watch(ctx)
	defer w.end()
	named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	stream, err := db.client.BatchGetDocuments(ctx, &pb.BatchGetDocumentsRequest{Database: db.name, Documents: named})
	documents := make([]*pb.Document, len(names))
	err = each(w, stream, err, func(reply *pb.BatchGetDocumentsResponse) bool {
		if at := slices.Index(names, reply.GetFound().GetName()); at >= 0 {
			documents[at] = reply.GetFound()
		}
		return true
	})
	db.failed(ctx, &err)
	return documents, err
}

// scan calls visit for the results of a query at a read time (zero: now) until visit returns
// false.
func (db *DB) scan(ctx context.Context, q *pb.StructuredQuery, at time.Time, visit func(*pb.Document) bool) error {
	ctx, w := db.watch(ctx)
	defer w.end()
	request := &pb.RunQueryRequest{Parent: db.name + "/documents", QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: q}}
	if !at.IsZero() {
		request.ConsistencySelector = &pb.RunQueryRequest_ReadTime{ReadTime: timestamppb.New(at)}
	}
	stream, err := db.client.RunQuery(ctx, request)
	err = each(w, stream, err, func(reply *pb.RunQueryResponse) bool { return reply.Document == nil || visit(reply.Document) })
	db.failed(ctx, &err)
	return err
}

// all returns the results of a query that have not expired, converted by of. what names the
// operation in errors.
func all[T any](ctx context.Context, db *DB, what string, q *pb.StructuredQuery, of func(d *pb.Document) (T, error)) (list []T, err error) {
	var wrong error
	err = db.scan(ctx, q, time.Time{}, func(d *pb.Document) bool {
		if live(d) {
			var one T
			one, wrong = of(d)
			list = append(list, one)
		}
		return wrong == nil
	})
	if wrong != nil {
		return nil, fmt.Errorf("%s: decode: %w", what, wrong)
	}
	return list, asFault(what, err)
}

// count returns the number of results of a query, at most most, and the read time: exactly the
// documents that were committed up to it are counted.
func (db *DB) count(ctx context.Context, q *pb.StructuredQuery, most int) (n int, read time.Time, err error) {
	ctx, w := db.watch(ctx)
	defer w.end()
	counting := &pb.StructuredAggregationQuery{QueryType: &pb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: q}, Aggregations: []*pb.StructuredAggregationQuery_Aggregation{{
		Alias: "n", Operator: &pb.StructuredAggregationQuery_Aggregation_Count_{Count: &pb.StructuredAggregationQuery_Aggregation_Count{UpTo: wrapperspb.Int64(int64(most))}},
	}}}
	stream, err := db.client.RunAggregationQuery(ctx, &pb.RunAggregationQueryRequest{Parent: db.name + "/documents", QueryType: &pb.RunAggregationQueryRequest_StructuredAggregationQuery{StructuredAggregationQuery: counting}})
	var reply *pb.RunAggregationQueryResponse
	err = each(w, stream, err, func(next *pb.RunAggregationQueryResponse) bool {
		reply = next
		return reply.GetResult() == nil
	})
	if err == nil && reply.GetResult() == nil {
		err = io.ErrUnexpectedEOF
	}
	if db.failed(ctx, &err) {
		return 0, read, err
	}
	return int(reply.Result.AggregateFields["n"].GetIntegerValue()), reply.ReadTime.AsTime().Truncate(time.Microsecond), nil
}

// failed reports a use of the database, and whether it failed. It adds the cause of ctx to the error
// if ctx has ended.
func (db *DB) failed(ctx context.Context, err *error) bool {
	switch cause := context.Cause(ctx); {
	case *err == nil || cause == nil:
	case errors.Is(cause, errSilent): // without the error of the client, which is that of a canceled call
		*err = cause
	default:
		*err = fmt.Errorf("%w: %w", cause, *err)
	}
	if answered(*err) {
		db.used(nil)
	} else {
		db.used(*err)
	}
	return *err != nil
}
