package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// The requests of a lease store, as Wire sees them on their way, are the steps that Log records of the
// store itself.
func TestWireRecordsTheStepsOfAStore(t *testing.T) {
	t.Setenv(Folder, t.TempDir())
	srv := cosmosemu.StartT(t)
	wire, log := NewWire("db", "leases"), New()
	endpoint, stop, err := wire.Host("h", srv.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	store := log.Store("h", func() (own, wall time.Time) { return time.Now(), time.Now() }, leaseStore(t, srv, endpoint))

	ctx := t.Context()
	const lease, info = "p..00-7F", "p.info"
	etag, err := store.Create(ctx, document(lease, "", 0, time.Now()))
	must(t, err, nil)
	_, err = store.Create(ctx, document(lease, "", 0, time.Now()))
	must(t, err, changefeed.ErrExists)
	_, err = store.Create(ctx, document(info, "", 0, time.Now()))
	must(t, err, nil)
	_, err = store.Create(ctx, document("p.host.h.1", "", 0, time.Now())) // no lease
	must(t, err, nil)
	_, err = store.List(ctx, "p.")
	must(t, err, nil)
	taken := document(lease, "h", 1, time.Now())
	taken.ETag = etag
	newer, err := store.Replace(ctx, taken)
	must(t, err, nil)
	_, err = store.Replace(ctx, taken)
	must(t, err, changefeed.ErrETagMismatch)
	_, err = store.Read(ctx, lease)
	must(t, err, nil)
	must(t, store.Delete(ctx, lease, etag), changefeed.ErrETagMismatch)
	must(t, store.Delete(ctx, lease, newer), nil)
	_, err = store.Read(ctx, lease)
	must(t, err, changefeed.ErrNotFound)

	var got, want []Step
	for _, s := range wire.steps["p"] {
		got = append(got, timeless(s.Step))
	}
	for i := range log.steps {
		if s := log.steps[i]; s.Lease != "" || s.Op == "list" {
			want = append(want, timeless(s))
		}
	}
	if len(wire.steps) != 1 || !reflect.DeepEqual(got, want) {
		t.Errorf("recorded on the wire:\n%s\nby the store:\n%s", lines(got), lines(want))
	}
}

// timeless removes what depends on the time, on requests for other records and on the order of a listing.
func timeless(s Step) Step {
	s.At, s.Call, s.Clocks = 0, 0, nil
	slices.SortFunc(s.Records, func(a, b Record) int { return strings.Compare(a.Lease, b.Lease) })
	return s
}

func lines(all []Step) string {
	var text strings.Builder
	for i := range all {
		fmt.Fprintf(&text, "%+v\n", all[i])
	}
	return text.String()
}

// A write of an owner begins at its timestamp, because the trust window begins then. If the process
// begins it before the answer to its former write, it has never received that answer.
func TestWirePlacesWritesOfAnOwnerAtTheirTimestamp(t *testing.T) {
	t.Setenv(Folder, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	answer := func(out http.ResponseWriter) { out.Header().Set("ETag", `"1"`) }
	store := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { answer(out) }))
	t.Cleanup(store.Close)
	wire := NewWire("db", "leases")
	host := wire.host("h")
	replace := func(ctx context.Context, epoch int64, written time.Time) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, store.URL+"/dbs/db/colls/leases/docs/p..00-7F", strings.NewReader(string(document("p..00-7F", "h", epoch, written).Body)))
		must(t, err, nil)
		reply, err := host.RoundTrip(r)
		must(t, err, nil)
		must(t, reply.Body.Close(), nil)
	}
	pause := func() { time.Sleep(20 * time.Millisecond) } // so that the times differ by more than rounding
	pause()
	replace(t.Context(), 1, wire.began.Add(-time.Hour)) // an acquisition: the process trusts it from later on
	pause()
	first := time.Now()
	pause()
	var second time.Time
	answer = func(http.ResponseWriter) {
		pause()
		second = time.Now()
		pause()
		cancel() // the process ends the request before the answer
	}
	replace(ctx, 1, first)
	answer = func(http.ResponseWriter) {}
	replace(t.Context(), 1, second)
	replace(t.Context(), 1, second) // sent again
	must(t, wire.Write("crash-x"), nil)

	all := wire.steps["p"]
	at := func(i int, do, failed string, want time.Time) {
		t.Helper()
		s := all[i]
		if off := s.At - want.Sub(wire.began).Microseconds(); s.Do != do || s.Failed != failed || off < -1000 || off > 1000 {
			t.Errorf("step %d: %s %q %d µs after %s, want %s %q", i, s.Do, s.Failed, off, want, do, failed)
		}
	}
	if len(all) != 8 || all[0].At <= 0 {
		t.Fatalf("steps:\n%+v", all)
	}
	at(2, "call", "", first)
	at(3, "end", "unknown", second)
	at(4, "call", "", second)
	if again := all[6]; again.At != all[5].At {
		t.Errorf("a repeated write begins at %d, want the end of the one before, %d", again.At, all[5].At)
	}
}

func document(id, owner string, epoch int64, written time.Time) changefeed.Record {
	return changefeed.Record{ID: id, Body: fmt.Appendf(nil, `{"id":%q,"Owner":%q,"properties":{"epoch":"%d"},"timestamp":%q}`, id, owner, epoch, written.Format(time.RFC3339Nano))}
}

func must(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// leaseStore returns a store in a new container, through an endpoint.
func leaseStore(t *testing.T, srv *cosmosemu.Server, endpoint string) changefeed.LeaseStore {
	t.Helper()
	key, err := azcosmos.NewKeyCredential(srv.Key())
	must(t, err, nil)
	client, err := azcosmos.NewClientWithKey(endpoint, key, cosmosfeed.ClientOptions(nil))
	must(t, err, nil)
	t.Cleanup(client.Close)
	_, err = client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, nil)
	must(t, err, nil)
	db, err := client.NewDatabase("db")
	must(t, err, nil)
	_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{ID: "leases", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}}}, nil)
	must(t, err, nil)
	store, err := cosmosfeed.NewLeaseStore(client, "db", "leases")
	must(t, err, nil)
	return store
}
