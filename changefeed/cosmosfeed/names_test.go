package cosmosfeed_test

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
)

// People know a lease by its short name: errors of the store, which reach logs and the
// lease itself, call it so.
func TestErrorsCallALeaseByItsShortName(t *testing.T) {
	key, err := azcosmos.NewKeyCredential("a2V5")
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey("https://nowhere.invalid", key, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := cosmosfeed.NewLeaseStore(client, "contacts", "leases")
	if err != nil {
		t.Fatal(err)
	}
	const lease, info = "feedboxhost_contacts_data..1F-2F", "feedboxhost_contacts_data.info"
	_, err = store.Replace(t.Context(), changefeed.Record{ID: lease})
	if text := err.Error(); strings.Contains(text, lease) || !strings.Contains(text, "lease "+changefeed.LeaseName(lease)) {
		t.Errorf("%q, want the lease %s", text, changefeed.LeaseName(lease))
	}
	if err := store.Delete(t.Context(), info, ""); !strings.Contains(err.Error(), info) {
		t.Errorf("%q, want the record %s", err, info)
	}
}
