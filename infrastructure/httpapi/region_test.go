package httpapi_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
)

// During a failover of the account callers learn that they can try again.
func TestRegionFailoverIsAnsweredWith503(t *testing.T) {
	t.Parallel()
	m, emulator := emulatedIn(t, &cosmosemu.Options{Regions: []string{"West US", "East US"}}, uuid.New)
	a := startOver(t, m, &httpapi.Options{})
	if got := a.do(http.MethodPost, "/api/contacts", jane); got.status != http.StatusCreated {
		t.Fatalf("before the failover: %d %s", got.status, got.body)
	}
	if err := emulator.FailOver("East US"); err != nil {
		t.Fatal(err)
	}
	got := a.do(http.MethodPost, "/api/contacts", jane)
	wait, err := strconv.Atoi(got.header.Get("Retry-After"))
	if p := problemOf(t, got); got.status != http.StatusServiceUnavailable || p.Code != "store_unavailable" || err != nil || wait < 1 {
		t.Errorf("%d %s, Retry-After %q; want 503 with a wait", got.status, got.body, got.header.Get("Retry-After"))
	}
	emulator.AdvertiseRegions()
	for range 10 { // the SDK reads the account again in the background
		if got = a.do(http.MethodPost, "/api/contacts", jane); got.status == http.StatusCreated {
			return
		}
	}
	t.Errorf("after the failover: %d %s", got.status, got.body)
}
