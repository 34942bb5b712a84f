package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// plain describes errors as they are.
type plain struct{ StoreDoctor }

func (plain) Describe(err error) string { return err.Error() }

func newSharedStore(t *testing.T, ids ...string) *Operator {
	t.Helper()
	cfg, err := config.LoadRelay([]string{"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com", "FEEDBOX_SERVICEBUS_NAMESPACE=events.servicebus.windows.net"})
	if err != nil {
		t.Fatal(err)
	}
	store := Store{Store: relayport.Store{Name: "memory", Feed: memfeed.New(nil), Leases: memstore.New(nil), Markers: memstore.New(nil)}, Doctor: plain{}}
	for _, id := range ids {
		if _, err := store.Leases.Create(t.Context(), changefeed.Record{ID: id, Body: fmt.Appendf(nil, `{"id":%q}`, id)}); err != nil {
			t.Fatal(err)
		}
	}
	return New(cfg, store, nil)
}

func texts(found []Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s: %s; %s", f.Check, f.Status, f.Detail, f.Next))
	}
	return strings.Join(out, "\n")
}

func TestDoctorShowsOtherProcessors(t *testing.T) {
	o := newSharedStore(t, "feedboxmemory_db_coll.info", "feedboxmemory_db_coll..00-FF", "othermemory_db_coll.info", "othermemory_db_coll..00-FF", "feedboxmemory_db_old.info")
	if _, err := o.store.Adopt(t.Context(), "feedbox"); err != nil {
		t.Fatal(err)
	}
	got := texts(o.examineSharing(t.Context()))
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "other lease sets ok: feedboxmemory_db_old, of another container") ||
		!strings.Contains(got, "other lease sets warning: processor other has leases of the same container") {
		t.Errorf("%s", got)
	}
	if got := texts(newSharedStore(t, "feedboxmemory_db_coll.info").examineSharing(t.Context())); got != "" {
		t.Errorf("one processor alone: %s", got)
	}
	if _, err := o.store.Adopt(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if got := texts(o.examineSharing(t.Context())); !strings.HasPrefix(got, "owner of parked events failed: other; ") || !strings.Contains(got, "feedbox parked adopt") {
		t.Errorf("parked events of another processor: %s", got)
	}
	o.store.Leases = silentLeases{o.store.Leases}
	if got := texts(o.examineSharing(t.Context())); !strings.Contains(got, "other lease sets unknown: ") {
		t.Errorf("a store that does not answer: %s", got)
	}
}

type silentLeases struct{ changefeed.LeaseStore }

// List implements changefeed.LeaseStore.
func (silentLeases) List(context.Context, string) ([]changefeed.Record, error) {
	return nil, context.DeadlineExceeded
}

// Another name is the tempting remedy, but it sends all stored events again.
func TestDoctorDoesNotAdviseANewNameForRefusedLeases(t *testing.T) {
	o := newSharedStore(t, "feedboxmemory_db_coll..00-FF")
	found := o.examineLeases(t.Context(), "")
	if len(found) != 1 || found[0].Status != FindingFailed {
		t.Fatalf("%+v, want a failure", found)
	}
	for _, want := range []string{"delete only the records named", "Another FEEDBOX_PROCESSOR has no positions", "240h0m0s"} {
		if !strings.Contains(found[0].Next, want) {
			t.Errorf("the advice does not say %q: %s", want, found[0].Next)
		}
	}
}
