package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
)

// TestFaultKindsOnEveryRoute makes the application fail with each kind on each route.
func TestFaultKindsOnEveryRoute(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	routes := []struct{ method, path, body string }{
		{"GET", path, ""},
		{"GET", "/api/contacts", ""},
		{"POST", "/api/contacts", jane},
		{"POST", path + "/update-name", `{"firstName":"X","lastName":"Y"}`},
		{"DELETE", path, ""},
	}
	for _, tc := range []struct {
		err        error
		status     int
		code       string
		retryAfter string
	}{
		{fault.New(fault.Invalid, "invalid_session_token", "the session token is malformed"), 400, "invalid_session_token", ""},
		{fault.Fields(fault.Field{Pointer: "/x", Message: "is wrong"}), 422, "validation_failed", ""},
		{fault.New(fault.NotFound, "contact_not_found", "there is no such contact"), 404, "contact_not_found", ""},
		{fault.New(fault.Conflict, "", "it exists"), 409, "conflict", ""},
		{fault.New(fault.PreconditionFailed, "", "it changed"), 412, "precondition_failed", ""},
		{fault.New(fault.Gone, "", "it was deleted"), 410, "gone", ""},
		{fault.New(fault.TooLarge, "", "it is too large"), 413, "too_large", ""},
		{&fault.Error{Kind: fault.Throttled, Code: "throttled", Message: "slow down", RetryAfter: 1200 * time.Millisecond}, 429, "throttled", "2"},
		{fault.New(fault.Unavailable, "outcome_unknown", "it may have been stored"), 503, "outcome_unknown", "1"},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), 503, "timeout", "1"},
		{fault.New(fault.Internal, "secret_code", "secret detail"), 500, "internal", ""},
		{errors.New("secret detail"), 500, "internal", ""},
		{fmt.Errorf("save contact: %w", fault.Wrap(fault.Unavailable, "", "the store is away", errors.New("secret detail"))), 503, "unavailable", "1"},
	} {
		a.memory.failWith(tc.err)
		for _, route := range routes {
			got := a.do(route.method, route.path, route.body)
			p := problemOf(t, got)
			if got.status != tc.status || p.Code != tc.code || got.header.Get("Retry-After") != tc.retryAfter {
				t.Errorf("%s %s under %v: %d %q %s", route.method, route.path, tc.err, got.status, got.header.Get("Retry-After"), got.body)
			}
			if strings.Contains(got.body, "secret") {
				t.Errorf("the answer shows internals: %s", got.body)
			}
		}
	}
}

func TestInternalErrorIsLoggedOnce(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	a.memory.failWith(errors.New("the disk is on fire"))
	got := a.do(http.MethodGet, path, "")
	lines := 0
	for line := range strings.SplitSeq(a.logs.String(), "\n") {
		if strings.Contains(line, "the disk is on fire") {
			lines++
			if !strings.Contains(line, got.header.Get("x-ms-request-id")) || !strings.Contains(line, `"level":"ERROR"`) {
				t.Errorf("the line lacks the request id or its level: %s", line)
			}
		}
	}
	if lines != 1 {
		t.Errorf("logged %d times:\n%s", lines, a.logs)
	}
}

func TestRequestTimeout(t *testing.T) {
	a := start(t, &httpapi.Options{RequestTimeout: 30 * time.Millisecond})
	a.memory.hold = make(chan struct{})
	got := a.do(http.MethodGet, "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2", "")
	if p := problemOf(t, got); got.status != 503 || p.Code != "timeout" || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	close(a.memory.hold)
}

func TestPanicIsAProblem(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	a.memory.contacts = nil // writing to it panics
	got := a.do(http.MethodPost, "/api/contacts", jane)
	if p := problemOf(t, got); got.status != 500 || p.Code != "internal" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if !strings.Contains(a.logs.String(), "panic: assignment to entry in nil map") || !strings.Contains(a.logs.String(), "memory_test.go") {
		t.Errorf("the panic is not logged with its stack:\n%s", a.logs)
	}
	if got := a.do(http.MethodGet, path, ""); got.status != 404 {
		t.Errorf("the server does not recover: %d", got.status)
	}
}

func TestInvalidOptionsAreListed(t *testing.T) {
	_, err := newServer(nil, &httpapi.Options{MaxBody: -1, TokenKeys: [][]byte{[]byte("short")}, PublicURL: "contoso"})
	for _, want := range []string{"MaxBody", "token key 1", "PublicURL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from %v", want, err)
		}
	}
}

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
