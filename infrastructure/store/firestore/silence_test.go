package firestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/uuid"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/timestamppb"

	"feedbox/changefeed"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
	"feedbox/infrastructure/store/unitofwork"
)

// silentServer sends a number of documents to each query, one each pause, and then nothing. It answers
// no other call.
type silentServer struct {
	pb.UnimplementedFirestoreServer
	documents int
	pause     time.Duration
	end       bool // end the query after the documents
	queries   atomic.Int32
}

func (s *silentServer) RunQuery(_ *pb.RunQueryRequest, stream pb.Firestore_RunQueryServer) error {
	if s.queries.Add(1) > 100 {
		return nil // otherwise a caller that queries on and on would not end
	}
	for n := range s.documents {
		select {
		case <-time.After(s.pause):
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		d := &pb.Document{Name: fmt.Sprint("d/", n), CreateTime: timestamppb.Now(), UpdateTime: timestamppb.Now(), Fields: map[string]*pb.Value{"events": value("[]")}}
		if err := stream.Send(&pb.RunQueryResponse{Document: d}); err != nil {
			return err
		}
	}
	if s.end {
		return nil
	}
	return silent(stream.Context())
}

func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (*silentServer) BatchGetDocuments(_ *pb.BatchGetDocumentsRequest, stream pb.Firestore_BatchGetDocumentsServer) error {
	return silent(stream.Context())
}

func (*silentServer) RunAggregationQuery(_ *pb.RunAggregationQueryRequest, stream pb.Firestore_RunAggregationQueryServer) error {
	return silent(stream.Context())
}

func (*silentServer) Commit(ctx context.Context, _ *pb.CommitRequest) (*pb.CommitResponse, error) {
	return nil, silent(ctx)
}

// inSilence runs a test with a database whose server is s, or accepts connections and sends nothing if s
// is nil.
func inSilence(t *testing.T, s *silentServer, test func(t *testing.T, db *DB)) {
	var server pb.FirestoreServer
	if s != nil {
		server = s
	}
	withServer(t, server, test)
}

func withServer(t *testing.T, s pb.FirestoreServer, test func(t *testing.T, db *DB), dial ...grpc.DialOption) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		if s != nil {
			pb.RegisterFirestoreServer(server, s)
			go func() { _ = server.Serve(listener) }()
		}
		options := []option.ClientOption{
			option.WithEndpoint("passthrough:///memory"), option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithInsecure()), //nolint:staticcheck // it overrides the client's credentials
			option.WithGRPCDialOption(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return listener.DialContext(ctx)
			})),
		}
		for _, o := range dial {
			options = append(options, option.WithGRPCDialOption(o))
		}
		db, err := Open(t.Context(), Options{Project: "p", Client: options})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { // also after a failure
			db.Close()
			server.Stop()
			_ = listener.Close()
		}()
		test(t, db)
	})
}

// Each operation on a silent server ends within its limit, with a fault that says that the store does
// not answer.
func TestOperationsEndIfTheServerIsSilent(t *testing.T) {
	id := uuid.New()
	all := changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "", Max: "FF"}, MaxItems: 10}
	feed := func(db *DB) *Feed {
		f, err := NewFeed(db, 1)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, do := range map[string]func(ctx context.Context, db *DB) error{
		"verify": func(ctx context.Context, db *DB) error { return db.Verify(ctx) },
		"oldest": func(ctx context.Context, db *DB) error { _, _, err := db.Oldest(ctx); return err },
		"walk":   func(ctx context.Context, db *DB) error { return db.Walk(ctx, func([]byte) error { return nil }) },
		"add":    func(ctx context.Context, db *DB) error { return db.AddEvent(ctx, "k", "e", "{}", -1) },
		"now":    func(ctx context.Context, db *DB) error { _, err := feed(db).Now(ctx, all.Range); return err },
		"read":   func(ctx context.Context, db *DB) error { _, err := feed(db).Read(ctx, all); return err },
		"leases": func(ctx context.Context, db *DB) error { _, err := Leases{db}.List(ctx, "x"); return err },
		"lease":  func(ctx context.Context, db *DB) error { _, err := Leases{db}.Read(ctx, "x"); return err },
		"create": func(ctx context.Context, db *DB) error {
			_, err := Leases{db}.Create(ctx, changefeed.Record{ID: "x"})
			return err
		},
		"gate":  func(ctx context.Context, db *DB) error { _, _, err := Parked{DB: db}.Find(ctx, "k", nil); return err },
		"gates": func(ctx context.Context, db *DB) error { _, err := Parked{DB: db}.Gates(ctx, true); return err },
		"change gate": func(ctx context.Context, db *DB) error {
			_, err := Parked{DB: db}.Commit(ctx, &parked.Change{})
			return err
		},
		"event":  func(ctx context.Context, db *DB) error { _, err := Records{db}.Event(ctx, "k", "e"); return err },
		"events": func(ctx context.Context, db *DB) error { _, err := Records{db}.Events(ctx, "k"); return err },
		"save": func(ctx context.Context, db *DB) error {
			return Records{db}.Save(ctx, &recordstore.Change{Change: &unitofwork.Change{ID: id}})
		},
		"aggregate": func(ctx context.Context, db *DB) error { _, err := Records{db}.Aggregate(ctx, "x", id); return err },
	} {
		for kind, server := range map[string]*silentServer{"connection": nil, "server": {}, "stream": {documents: 3}} {
			t.Run(name+" silent "+kind, func(t *testing.T) {
				inSilence(t, server, func(t *testing.T, db *DB) {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
					defer cancel()
					began := time.Now()
					err := do(ctx, db)
					if took := time.Since(began); took > 15*time.Second {
						t.Errorf("took %v, want 15 s at most", took)
					}
					if fault.KindOf(err) != fault.Unavailable && code(err) != codes.DeadlineExceeded { // leases have no faults
						t.Errorf("error %v, want that the store does not answer", err)
					}
				})
			})
		}
	}
}

// A long reply over a slow link is no silence.
func TestSlowQueryIsReadToItsEnd(t *testing.T) {
	inSilence(t, &silentServer{documents: 20, pause: 10 * time.Second, end: true}, func(t *testing.T, db *DB) {
		n := 0
		if err := db.scan(t.Context(), oldest(), time.Time{}, func(*pb.Document) bool { n++; return true }); err != nil || n != 20 {
			t.Errorf("%d documents and error %v, want 20", n, err)
		}
	})
}

// A page of an audit trail is read at once, however many entries follow.
func TestAuditPageReadsNoFurther(t *testing.T) {
	s := &silentServer{documents: 3, end: true}
	inSilence(t, s, func(t *testing.T, db *DB) {
		entries, err := Records{DB: db}.Audits(t.Context(), uuid.New(), 0, 3)
		if n := s.queries.Load(); err != nil || len(entries) != 3 || n != 1 {
			t.Errorf("%d entries by %d queries, %v; want 3 by one", len(entries), n, err)
		}
	})
}

// backlogServer has events of one key, some each second.
type backlogServer struct {
	pb.UnimplementedFirestoreServer
	began    time.Time // when the first one was committed
	document string
	events   int

	mu   sync.Mutex
	most int // sent by one query
}

const perSecond = 20

// after returns the number of the first event that a query finds.
func (s *backlogServer) after(q *pb.StructuredQuery) int {
	from := q.GetWhere().GetCompositeFilter().GetFilters()[1].GetFieldFilter().GetValue().GetTimestampValue().AsTime()
	return max(0, int((from.Sub(s.began)+time.Second/perSecond-1)*perSecond/time.Second))
}

func (s *backlogServer) RunQuery(r *pb.RunQueryRequest, stream pb.Firestore_RunQueryServer) error {
	from := s.after(r.GetStructuredQuery())
	for n := from; n < s.events; n++ {
		at := s.began.Add(time.Duration(n) * time.Second / perSecond)
		d := &pb.Document{Name: fmt.Sprint("d/", n), CreateTime: timestamppb.New(at), UpdateTime: timestamppb.New(at), Fields: map[string]*pb.Value{"key": value("k"), memberAt: value(at), "document": value(s.document)}}
		if err := stream.Send(&pb.RunQueryResponse{Document: d}); err != nil {
			return nil //nolint:nilerr // the reader has enough
		}
		s.mu.Lock()
		s.most = max(s.most, n-from+1)
		s.mu.Unlock()
	}
	return nil
}

func (s *backlogServer) RunAggregationQuery(r *pb.RunAggregationQueryRequest, stream pb.Firestore_RunAggregationQueryServer) error {
	q := r.GetStructuredAggregationQuery()
	n := min(int64(s.events-s.after(q.GetStructuredQuery())), q.GetAggregations()[0].GetCount().GetUpTo().GetValue())
	return stream.Send(&pb.RunAggregationQueryResponse{ReadTime: timestamppb.Now(), Result: &pb.AggregationResult{AggregateFields: map[string]*pb.Value{"n": value(n)}}})
}

// A backlog of large events is read in parts, because a relay that needs the memory for a thousand of them would
// be ended again with each start.
func TestBacklogOfLargeEventsFitsIntoMemory(t *testing.T) {
	const size, events = 256 << 10, 120
	s := &backlogServer{document: strings.Repeat("x", size), events: events}
	withServer(t, s, func(t *testing.T, db *DB) {
		s.began = time.Now().Truncate(time.Second).Add(-time.Hour)
		feed, err := NewFeed(db, 1)
		if err != nil {
			t.Fatal(err)
		}
		all := changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 100}
		var last int64
		for n := 0; n < events; {
			page, err := feed.Read(t.Context(), all)
			if err != nil || len(page.Items) == 0 || page.Bytes > pageBytes+size {
				t.Fatalf("after %d events, a page of %d with %d bytes, want %d bytes at most; %v", n, len(page.Items), page.Bytes, pageBytes, err)
			}
			for _, e := range page.Items {
				if n++; e.LSN <= last {
					t.Fatalf("event %d has position %d, after %d", n, e.LSN, last)
				}
				last = e.LSN
			}
			all.Continuation = page.Continuation
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if most := searchBytes/size + 3*perSecond; s.most > most { // some are on their way when the reader has enough
			t.Errorf("a query read %d events, want %d at most", s.most, most)
		}
	})
}

// noToken is the credential of an identity whose service does not answer.
type noToken struct{}

func (noToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, errors.New("the metadata server does not answer")
}

func (noToken) RequireTransportSecurity() bool { return false }

// The client answers as a database that refuses the identity if it has no token. That is an outage, in which
// nothing is stored.
func TestMissingTokenIsAnOutage(t *testing.T) {
	withServer(t, &silentServer{}, func(t *testing.T, db *DB) {
		_, err := db.commit(t.Context())
		if got := asFault("save", err); !fault.Is(got, fault.Unavailable) || (Records{}).Ambiguous(err) || answered(err) {
			t.Errorf("%v, ambiguous %t, answered %t; want unavailable, and nothing stored", got, (Records{}).Ambiguous(err), answered(err))
		}
	}, grpc.WithPerRPCCredentials(noToken{}))
	if got := asFault("save", status.Error(codes.Unauthenticated, "Request had invalid authentication credentials.")); !fault.Is(got, fault.Internal) {
		t.Errorf("a refused token: %v; want a fault of the set-up", got)
	}
}

// busyServer has no documents. It is too busy for a number of commits.
type busyServer struct {
	pb.UnimplementedFirestoreServer
	busy    int32
	commits atomic.Int32
}

func (*busyServer) BatchGetDocuments(*pb.BatchGetDocumentsRequest, pb.Firestore_BatchGetDocumentsServer) error {
	return nil
}

func (s *busyServer) Commit(_ context.Context, r *pb.CommitRequest) (*pb.CommitResponse, error) {
	if s.commits.Add(1) <= s.busy {
		return nil, status.Error(codes.ResourceExhausted, "too much contention")
	}
	results := make([]*pb.WriteResult, len(r.GetWrites()))
	for i := range results {
		results[i] = &pb.WriteResult{UpdateTime: timestamppb.Now()}
	}
	return &pb.CommitResponse{WriteResults: results, CommitTime: timestamppb.Now()}, nil
}

// The client repeats no commit, because its outcome may be unknown. That of a throttled one is known.
func TestThrottledCommitIsRepeated(t *testing.T) {
	for busy, want := range map[int32]int32{2: 3, 99: 3} {
		s := &busyServer{busy: busy}
		withServer(t, s, func(t *testing.T, db *DB) {
			_, err := recordstoretest.Baskets(t, Records{DB: db}, nil).Create(t.Context(), recordstoretest.Opening(""))
			if n := s.commits.Load(); n != want || busy < want && err != nil || busy > want && !fault.Is(err, fault.Throttled) {
				t.Errorf("busy for %d commits: %d commits, %v; want %d", busy, n, err, want)
			}
		})
	}
}

// lossyServer stores documents, and loses the reply to the first commit: it answers with a code.
type lossyServer struct {
	pb.UnimplementedFirestoreServer
	code codes.Code

	mu     sync.Mutex // guards stored
	stored map[string]*pb.Document
}

func (s *lossyServer) BatchGetDocuments(r *pb.BatchGetDocumentsRequest, reply pb.Firestore_BatchGetDocumentsServer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range r.GetDocuments() {
		if d := s.stored[name]; d != nil {
			if err := reply.Send(&pb.BatchGetDocumentsResponse{Result: &pb.BatchGetDocumentsResponse_Found{Found: d}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *lossyServer) Commit(_ context.Context, r *pb.CommitRequest) (*pb.CommitResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored != nil {
		return nil, status.Error(codes.AlreadyExists, "the document exists")
	}
	s.stored = map[string]*pb.Document{}
	for _, w := range r.GetWrites() {
		d := w.GetUpdate()
		d.CreateTime, d.UpdateTime = timestamppb.Now(), timestamppb.Now()
		s.stored[d.GetName()] = d
	}
	return nil, status.Error(s.code, "the stream has ended")
}

// A commit whose reply is lost ends with one of several codes. Its repetition finds its own records.
func TestCommitWithALostReplyIsNoConflict(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown} {
		t.Run(code.String(), func(t *testing.T) {
			withServer(t, &lossyServer{code: code}, func(t *testing.T, db *DB) {
				if _, err := recordstoretest.Baskets(t, Records{DB: db}, nil).Create(t.Context(), recordstoretest.Opening("")); err != nil {
					t.Errorf("a stored commit was reported as %v", err)
				}
			})
		})
	}
}
