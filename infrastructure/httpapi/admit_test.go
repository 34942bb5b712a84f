package httpapi_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
)

// apiKeys gives the callers "writer" and "reader" the keys wkey and rkey.
func apiKeys(t *testing.T) auth.Authenticator {
	t.Helper()
	keys, err := auth.NewAPIKeys([]auth.APIKey{
		{Principal: "writer", Write: true, Hash: sha256.Sum256([]byte("wkey"))},
		{Principal: "reader", Hash: sha256.Sum256([]byte("rkey"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestEveryRouteRequiresItsScope(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: apiKeys(t)})
	path := a.do(http.MethodPost, "/api/contacts", jane, "x-api-key", "wkey").header.Get("Location")
	for _, tc := range []struct {
		method, path, body string
		write              bool
	}{
		{"GET", "/api/contacts", "", false},
		{"GET", path, "", false},
		{"HEAD", path, "", false},
		{"POST", "/api/contacts", jane, true},
		{"POST", path + "/update-name", `{"firstName":"X","lastName":"Y"}`, true},
		{"POST", path + "/update-description", `{"description":"new"}`, true},
		{"POST", path + "/update-email", `{"email":null}`, true},
		{"POST", path + "/update-company", `{"companyName":"X"}`, true},
		{"DELETE", path, "", true},
	} {
		for key, allowed := range map[string]bool{"": false, "nokey": false, "rkey": !tc.write, "wkey": true} {
			headers := []string{"x-api-key", key}
			if key == "" {
				headers = nil
			}
			got := a.do(tc.method, tc.path, tc.body, headers...)
			want := map[string]int{"": 401, "nokey": 401, "rkey": 403}[key]
			if allowed {
				if got.status >= 300 {
					t.Errorf("%s %s with %q: %d %s", tc.method, tc.path, key, got.status, got.body)
				}
				continue
			}
			if got.status != want || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "ApiKey") {
				t.Errorf("%s %s with %q: %d %q", tc.method, tc.path, key, got.status, got.header.Get("WWW-Authenticate"))
			}
			if tc.method != "HEAD" {
				problemOf(t, got)
			}
		}
	}
	if got := a.do(http.MethodGet, "/nowhere", ""); got.status != 404 {
		t.Errorf("an unknown path asks for a credential: %d", got.status)
	}
	if log := a.logs.String(); strings.Contains(log, "wkey") || strings.Contains(log, "writer") {
		t.Errorf("credential or caller in the log:\n%s", log)
	}
}

// broken is an identity provider with an outage.
type broken struct{}

func (broken) Authenticate(context.Context, *http.Request) (auth.Principal, error) {
	return auth.Principal{}, fmt.Errorf("%w: connection refused", auth.ErrUnavailable)
}
func (broken) Challenge() string { return "Bearer" }

func TestIdentityOutage(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: broken{}, RateLimit: 0.01, RateBurst: 1})
	for range 3 { // our outage costs callers nothing of their rate
		got := a.do(http.MethodGet, "/api/contacts", "")
		if p := problemOf(t, got); got.status != 503 || p.Code != "identity_unavailable" || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "refused") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

func TestRateLimitIsPerPrincipal(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: apiKeys(t), RateLimit: 0.01, RateBurst: 3})
	for i := range 5 {
		got := a.do(http.MethodGet, "/api/contacts", "", "x-api-key", "rkey")
		want := 200
		if i >= 3 {
			want = 429
		}
		if got.status != want {
			t.Fatalf("request %d: %d %s", i+1, got.status, got.body)
		}
		if want == 429 {
			p := problemOf(t, got)
			seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
			if p.Code != "rate_limited" || err != nil || seconds < 90 || seconds > 100 {
				t.Errorf("Retry-After %q, %s", got.header.Get("Retry-After"), got.body)
			}
		}
	}
	if got := a.do(http.MethodGet, "/api/contacts", "", "x-api-key", "wkey"); got.status != 200 {
		t.Errorf("another principal is limited too: %d", got.status)
	}
}

// A request that is refused before authentication counts for its address. It does not use up
// the rate of accepted requests.
func TestRefusalsAreRateLimitedPerAddress(t *testing.T) {
	for name, send := range map[string]func(a *api) answer{
		"401, no key":    func(a *api) answer { return a.do(http.MethodGet, "/api/contacts", "") },
		"401, wrong key": func(a *api) answer { return a.do(http.MethodPost, "/api/contacts", jane, "x-api-key", "nokey") },
		"404":            func(a *api) answer { return a.do(http.MethodGet, "/nowhere", "", "x-api-key", "rkey") },
		"404, unclean":   func(a *api) answer { return a.do(http.MethodGet, "/api/../x", "") },
		"405":            func(a *api) answer { return a.do(http.MethodPut, "/api/contacts", "", "x-api-key", "rkey") },
		"405, document":  func(a *api) answer { return a.do(http.MethodPost, "/openapi.json", "{}") },
		"406": func(a *api) answer {
			return a.do(http.MethodGet, "/api/contacts", "", "Accept", "text/html", "x-api-key", "rkey")
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, &httpapi.Options{Auth: apiKeys(t), RateLimit: 0.01, RateBurst: 3})
			for i := range 5 {
				got := send(a)
				if want := i >= 3; (got.status == 429) != want || want && (problemOf(t, got).Code != "rate_limited" || got.header.Get("Retry-After") == "") {
					t.Errorf("request %d: %d %s", i+1, got.status, got.body)
				}
			}
			if got := a.do(http.MethodGet, "/api/contacts", "", "x-api-key", "rkey"); got.status != 200 {
				t.Errorf("a request that is not refused: %d %s", got.status, got.body)
			}
		})
	}
}

// Documents need no credential. Their rate is apart from that of refusals.
func TestDocumentsAreRateLimitedPerAddress(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: apiKeys(t), RateLimit: 0.01, RateBurst: 3})
	for i := range 5 {
		got := a.do(http.MethodGet, []string{"/openapi.json", "/docs"}[i%2], "")
		if want := i >= 3; (got.status == 429) != want || want && (problemOf(t, got).Code != "rate_limited" || got.header.Get("Retry-After") == "") {
			t.Errorf("request %d: %d %.100s", i+1, got.status, got.body)
		}
	}
	if got := a.do(http.MethodGet, "/nowhere", ""); got.status != 404 {
		t.Errorf("a refusal after too many documents: %d", got.status)
	}
}

// A caller gets half of the places while it is alone, and another caller gets one of the rest.
func TestCallerHoldsAsManyPlacesAsAreFree(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: apiKeys(t), MaxInFlight: 4})
	path := a.do(http.MethodPost, "/api/contacts", jane, "x-api-key", "wkey").header.Get("Location")
	hold := make(chan struct{})
	a.memory.mu.Lock()
	a.memory.hold, a.memory.entered = hold, make(chan struct{}, 4)
	a.memory.mu.Unlock()
	var held sync.WaitGroup
	read := func(key string) {
		held.Go(func() {
			if got := a.do(http.MethodGet, path, "", "x-api-key", key); got.status != 200 {
				t.Errorf("a request within the share: %d", got.status)
			}
		})
		a.awaitEntered()
	}
	read("rkey")
	read("rkey")
	got := a.do(http.MethodGet, path, "", "x-api-key", "rkey")
	if p := problemOf(t, got); got.status != 429 || p.Code != "rate_limited" || got.header.Get("Retry-After") != "1" {
		t.Errorf("beyond the share: %d %s", got.status, got.body)
	}
	read("wkey")
	close(hold)
	held.Wait()
}

func TestAnonymousIsNotRateLimited(t *testing.T) {
	a := start(t, &httpapi.Options{RateLimit: 0.01, RateBurst: 1})
	for range 5 {
		if got := a.do(http.MethodGet, "/api/contacts", ""); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if got := a.do(http.MethodGet, "/nowhere", ""); got.status != 404 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
}

func TestRequestsBeyondCapacityAreRefused(t *testing.T) {
	a := start(t, &httpapi.Options{MaxInFlight: 2})
	path, _ := a.create()
	hold := make(chan struct{})
	entered := make(chan struct{}, 2)
	a.memory.mu.Lock()
	a.memory.hold, a.memory.entered = hold, entered
	a.memory.mu.Unlock()
	var held sync.WaitGroup
	for range 2 {
		held.Go(func() {
			if got := a.do(http.MethodGet, path, ""); got.status != 200 {
				t.Errorf("a request within the limit: %d", got.status)
			}
		})
		a.awaitEntered()
	}
	for range 3 { // a refused request takes no place
		got := a.do(http.MethodGet, path, "")
		if p := problemOf(t, got); got.status != 503 || p.Code != "overloaded" || got.header.Get("Retry-After") != "1" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	close(hold)
	held.Wait()
	a.memory.mu.Lock()
	a.memory.entered = nil
	a.memory.mu.Unlock()
	if got := a.do(http.MethodGet, path, ""); got.status != 200 {
		t.Errorf("after the overload: %d", got.status)
	}
}

// A caller without the permission has a rate too, and the log of its refusals is bounded by it.
func TestRefusalForAPermissionSpendsTheRateOfTheCaller(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: apiKeys(t), RateLimit: 0.01, RateBurst: 3})
	for i := range 5 {
		got := a.do(http.MethodPost, "/api/contacts", jane, "x-api-key", "rkey")
		want := 403
		if i >= 3 {
			want = 429
		}
		if got.status != want {
			t.Errorf("request %d: %d, want %d", i+1, got.status, want)
		}
	}
}
