package httpapi_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/infrastructure/httpapi"
)

// A precondition reaches the application in a form that a store can compare. A change with
// If-None-Match is bound to the compared ETag, and continues the session of the comparison.
func TestPreconditionsReachTheApplication(t *testing.T) {
	var read query.Read
	var target command.Target
	a := start(t, nil)
	a.serve(must(t, httpapi.Resource{Noun: "thing", Routes: []httpapi.Route{
		httpapi.Read(httpapi.Operation{}, func(_ context.Context, in query.Read) (httpapi.Found[thing], error) {
			read = in
			return httpapi.Found[thing]{ETag: `"v7"`, SessionToken: "0:-1#7"}, nil
		}),
		httpapi.Delete(httpapi.Operation{}, func(_ context.Context, in command.Target) (command.Updated, error) {
			target = in
			return command.Updated{}, nil
		}),
	}}))
	const path = "/api/things/b5e2e7aa-4982-4735-9422-c39a7c4af5c2"
	for sent, want := range map[string][]string{`"v6"`: {`"v6"`}, `W/"v6"`: {`"v6"`}, `"v5", "v6"`: nil} {
		if got := a.do(http.MethodGet, path, "", "If-None-Match", sent, "x-ms-session-token", "0:-1#3"); got.status != 200 || !slices.Equal(read.IfNoneMatch, want) || read.SessionToken != "0:-1#3" {
			t.Errorf("%s: %d; read with If-None-Match %q, session %q", sent, got.status, read.IfNoneMatch, read.SessionToken)
		}
	}
	got := a.do(http.MethodDelete, path, "", "If-None-Match", `"v6"`, "x-ms-session-token", "0:-1#3")
	if got.status != 204 || !slices.Equal(target.IfMatch, []string{`"v7"`}) || target.SessionToken != "0:-1#7" {
		t.Errorf("%d; the change has If-Match %q, session %q; want the compared state", got.status, target.IfMatch, target.SessionToken)
	}
}
