package firestore

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// unindexed is a service whose database lacks the index of a collection, because Google's emulator
// needs no indexes.
type unindexed struct {
	pb.UnimplementedFirestoreServer

	lacks string
	asked chan *pb.StructuredQuery
}

func (u *unindexed) RunQuery(r *pb.RunQueryRequest, stream pb.Firestore_RunQueryServer) error {
	q := r.GetStructuredQuery()
	u.asked <- q
	if q.GetFrom()[0].GetCollectionId() == u.lacks {
		return status.Error(codes.FailedPrecondition, "The query requires an index.")
	}
	return stream.Send(&pb.RunQueryResponse{})
}

// Verify names the missing index. Its query is cheap in a database with many events: one slot, from
// now on.
func TestVerify(t *testing.T) {
	t.Parallel()
	for _, lacks := range []string{collectionEvents, collectionParked, ""} {
		t.Run("lacks "+lacks, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			service := &unindexed{lacks: lacks, asked: make(chan *pb.StructuredQuery, 2)}
			server := grpc.NewServer()
			pb.RegisterFirestoreServer(server, service)
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			db, err := Open(t.Context(), Options{Project: "p", Emulator: listener.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now().Truncate(time.Microsecond)
			err = db.Verify(t.Context())
			if errors.Is(err, ErrIndex) != (lacks != "") || lacks != "" && !strings.Contains(err.Error(), lacks) || lacks == "" && err != nil {
				t.Errorf("the database lacks %q: %v", lacks, err)
			}
			db.Close()
			server.Stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
			close(service.asked)
			for q := range service.asked {
				if q.GetFrom()[0].GetCollectionId() != collectionEvents {
					continue
				}
				filters := q.GetWhere().GetCompositeFilter().GetFilters()
				slots := filters[0].GetFieldFilter().GetValue().GetArrayValue().GetValues()
				from := filters[1].GetFieldFilter().GetValue().GetTimestampValue().AsTime()
				if len(slots) != 1 || from.Before(begun) {
					t.Errorf("asked for the events of %d slots since %s", len(slots), from)
				}
			}
		})
	}
}

// The deployed definitions have the indexes that the queries need and the TTL policies.
func TestIndexDefinitions(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("firestore.indexes.json")
	if err != nil {
		t.Fatal(err)
	}
	var defined struct {
		Indexes []struct {
			CollectionGroup string
			Fields          []struct{ FieldPath string }
		}
		FieldOverrides []struct {
			CollectionGroup, FieldPath string
			TTL                        bool
		}
	}
	if err := json.Unmarshal(raw, &defined); err != nil {
		t.Fatal(err)
	}
	indexes := map[string]string{}
	for _, index := range defined.Indexes {
		for _, f := range index.Fields {
			indexes[index.CollectionGroup] += f.FieldPath + " "
		}
	}
	if indexes[collectionEvents] != "slot "+memberAt+" " || indexes[collectionParked] != "line position " {
		t.Errorf("the indexes are %v", indexes)
	}
	var living []string
	for _, o := range defined.FieldOverrides {
		if o.TTL && o.FieldPath == memberExpires {
			living = append(living, o.CollectionGroup)
		}
	}
	if want := strings.Join([]string{collectionEvents, collectionAggregates, collectionRequests, collectionAudits}, " "); strings.Join(living, " ") != want {
		t.Errorf("TTL policies of %v, want %s", living, want)
	}
}

// The service refuses a request for no document, and Google's emulator does not.
func TestNoEventsAreLookedUpWithoutARequest(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Options{Project: "p", Emulator: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := (Parked{DB: db}).SkippedAmong(ended, nil); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}
