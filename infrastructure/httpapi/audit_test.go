package httpapi_test

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
)

// twoWriters are the callers "a" and "b" with the keys key-a and key-b, the reader "c", and the reader "d"
// that may read who the others are.
func twoWriters(t *testing.T) auth.Authenticator {
	t.Helper()
	keys, err := auth.NewAPIKeys([]auth.APIKey{
		{Principal: "a", Write: true, Hash: sha256.Sum256([]byte("key-a"))},
		{Principal: "b", Write: true, Hash: sha256.Sum256([]byte("key-b"))},
		{Principal: "c", Hash: sha256.Sum256([]byte("key-c"))},
		{Principal: "d", Audit: true, Hash: sha256.Sum256([]byte("key-d"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

type auditTrail struct {
	Items []struct {
		Version       int64
		At, Principal string
		Events        []struct {
			ID, Action string
			Sequence   int64
		}
	}
	HasMore  bool
	NextLink string
}

func TestAuditTrail(t *testing.T) {
	a, _ := startEmulated(t, &httpapi.Options{Auth: twoWriters(t)})
	path := a.do(http.MethodPost, "/api/contacts", jane, "x-api-key", "key-a").header.Get("Location")
	a.patch(path, `{"name":{"lastName":"Roe"},"email":null}`, "x-api-key", "key-b")
	a.patch(path, `{}`, "x-api-key", "key-b") // changes nothing
	a.do(http.MethodDelete, path, "", "x-api-key", "key-a")

	// A reader sees its own changes, and who the others are only with the permission.
	for key, want := range map[string]string{
		"key-a": "apikey:a ContactCreatedEvent\n ContactNameUpdatedEvent ContactEmailUpdatedEvent\napikey:a ContactDeletedEvent",
		"key-c": " ContactCreatedEvent\n ContactNameUpdatedEvent ContactEmailUpdatedEvent\n ContactDeletedEvent",
		"key-d": "apikey:a ContactCreatedEvent\napikey:b ContactNameUpdatedEvent ContactEmailUpdatedEvent\napikey:a ContactDeletedEvent",
	} {
		if got := trailOf(t, a, path, key); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", key, got, want)
		}
	}
	if got := a.do(http.MethodGet, "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2/audit", "", "x-api-key", "key-a"); got.status != 404 {
		t.Errorf("an unknown contact: %d %s", got.status, got.body)
	}
}

// trailOf reads all pages of an audit trail as the caller with the key.
func trailOf(t *testing.T, a *api, path, key string) string {
	t.Helper()
	var lines []string
	target := path + "/audit?pageSize=2"
	for target != "" {
		got := a.do(http.MethodGet, target, "", "x-api-key", key)
		var page auditTrail
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
			t.Fatalf("%d %v %s", got.status, err, got.body)
		}
		for _, item := range page.Items {
			line := item.Principal
			for _, e := range item.Events {
				line += " " + e.Action
			}
			lines = append(lines, line)
		}
		if strings.Contains(got.body, "Jane") || strings.Contains(got.body, "Roe") {
			t.Errorf("personal data in the trail: %s", got.body)
		}
		target = strings.TrimPrefix(page.NextLink, a.url)
	}
	return strings.Join(lines, "\n")
}

// A token of one audit trail is refused by another.
func TestTokenOpensOnlyItsListing(t *testing.T) {
	a, _ := startEmulated(t, nil)
	one, _ := a.create()
	other, _ := a.create()
	a.patch(one, `{"email":null}`)
	token := a.do(http.MethodGet, one+"/audit?pageSize=1", "").header.Get("X-Continuation-Token")
	if token == "" {
		t.Fatal("no token")
	}
	for path, want := range map[string]int{one + "/audit": 200, other + "/audit": 400, "/api/contacts": 400} {
		if got := a.do(http.MethodGet, path, "", "x-continuation-token", token); got.status != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestAuditRouteIsAbsentByDefault(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	if got := a.do(http.MethodGet, path+"/audit", ""); got.status != 404 || problemOf(t, got).Code != "route_not_found" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
