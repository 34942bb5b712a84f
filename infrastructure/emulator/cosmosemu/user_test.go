package cosmosemu_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// permit creates a permission of user u and returns its token.
func permit(t *testing.T, srv *cosmosemu.Server, body string, headers map[string]string) string {
	t.Helper()
	r := send(t, srv, http.MethodPost, "dbs/db/users/u/permissions", body, headers)
	var p struct {
		Token string `json:"_token"`
	}
	if err := json.Unmarshal([]byte(r.Body), &p); err != nil || r.StatusCode != http.StatusCreated || p.Token == "" {
		t.Fatalf("permission: %d %s", r.StatusCode, r.Body)
	}
	return p.Token
}

// with sends a request with a resource token.
func with(t *testing.T, srv *cosmosemu.Server, token, method, path, body, key string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.Endpoint()+path, strings.NewReader(body))
	must(t, err)
	req.Header.Set("authorization", url.QueryEscape(token))
	req.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	if key != "" {
		req.Header.Set("x-ms-documentdb-partitionkey", key)
	}
	r, err := srv.HTTPClient().Do(req)
	must(t, err)
	must(t, r.Body.Close())
	return r.StatusCode
}

func TestUsersAndPermissions(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	want := func(method, path, body string, status int, says ...string) answer {
		t.Helper()
		r := send(t, srv, method, path, body, nil)
		for _, text := range says {
			if !strings.Contains(r.Body, text) {
				t.Errorf("%s %s: %s lacks %s", method, path, r.Body, text)
			}
		}
		if r.StatusCode != status {
			t.Errorf("%s %s: %d %s, want %d", method, path, r.StatusCode, r.Body, status)
		}
		return r
	}
	const read = `{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}`
	want(http.MethodPost, "dbs/db/users", `{"id":"u"}`, 201, `"_permissions":"permissions/"`)
	want(http.MethodPost, "dbs/db/users", `{"id":"u"}`, 409)
	want(http.MethodPost, "dbs/db/users", `{"id":"a/b"}`, 400)
	want(http.MethodGet, "dbs/db/users/none", "", 404)
	want(http.MethodPut, "dbs/db/users/u", `{"id":"v"}`, 200, `"id":"v"`)
	want(http.MethodPut, "dbs/db/users/v", `{"id":"u"}`, 200)
	want(http.MethodGet, "dbs/db/users", "", 200, `"Users":[{"id":"u"`, `"_count":1`)
	want(http.MethodPost, "dbs/db/users/u/permissions", read, 201, `"_token":"type=resource&`, `"permissionMode":"Read"`)
	want(http.MethodPost, "dbs/db/users/u/permissions", read, 409)
	want(http.MethodPost, "dbs/db/users/u/permissions", `{"id":"q","permissionMode":"Write","resource":"dbs/db/colls/c"}`, 400)
	want(http.MethodPost, "dbs/db/users/u/permissions", `{"id":"q","permissionMode":"All","resource":"dbs/db/colls/none"}`, 404)
	want(http.MethodPost, "dbs/db/users/u/permissions", `{"id":"q","permissionMode":"All","resource":"dbs/db/sprocs/x"}`, 400)
	want(http.MethodPut, "dbs/db/users/u/permissions/p", strings.Replace(read, "Read", "All", 1), 200, `"permissionMode":"All"`)
	want(http.MethodGet, "dbs/db/users/u/permissions/p", "", 200, `"resource":"dbs/db/colls/c"`)
	want(http.MethodGet, "dbs/db/users/u/permissions", "", 200, `"Permissions":[{"id":"p"`)
	want(http.MethodDelete, "dbs/db/users/u/permissions/p", "", 204)
	want(http.MethodGet, "dbs/db/users/u/permissions/p", "", 404)
	want(http.MethodDelete, "dbs/db/users/u", "", 204)
	want(http.MethodGet, "dbs/db/users", "", 200, `"_count":0`)
}

// A token allows exactly the access of its permission.
func TestResourceTokens(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	create(t, c, "2", "b")
	must(t, srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "other", PartitionKey: []string{"/pk"}}))
	send(t, srv, http.MethodPost, "dbs/db/users", `{"id":"u"}`, nil)
	self := send(t, srv, http.MethodGet, "dbs/db/colls/c", "", nil)
	var container struct {
		Self string `json:"_self"`
	}
	must(t, json.Unmarshal([]byte(self.Body), &container))
	tokens := map[string]string{
		"read":   permit(t, srv, `{"id":"read","permissionMode":"Read","resource":"dbs/db/colls/c"}`, nil),
		"all":    permit(t, srv, `{"id":"all","permissionMode":"All","resource":"`+container.Self+`"}`, nil),
		"key":    permit(t, srv, `{"id":"key","permissionMode":"All","resource":"dbs/db/colls/c","resourcePartitionKey":["a"]}`, nil),
		"item":   permit(t, srv, `{"id":"item","permissionMode":"All","resource":"dbs/db/colls/c/docs/1"}`, nil),
		"forged": "type=resource&ver=1.0&sig=AAAA;eyJjIjoiIn0;",
	}
	const docs = "dbs/db/colls/c/docs"
	for _, call := range []struct {
		what, method, path, body, key string
		want                          map[string]int // by token
	}{
		{"account", "GET", "", "", "", map[string]int{"read": 200, "all": 200, "key": 200, "item": 200, "forged": 401}},
		{"container", "GET", "dbs/db/colls/c", "", "", map[string]int{"read": 200, "all": 200, "key": 200, "item": 200, "forged": 401}},
		{"database", "GET", "dbs/db", "", "", map[string]int{"read": 403, "all": 403, "key": 403, "item": 403, "forged": 401}},
		{"item of key a", "GET", docs + "/1", "", `["a"]`, map[string]int{"read": 200, "all": 200, "key": 200, "item": 200, "forged": 401}},
		{"item of key b", "GET", docs + "/2", "", `["b"]`, map[string]int{"read": 200, "all": 200, "key": 403, "item": 403, "forged": 401}},
		{"all items", "GET", docs, "", "", map[string]int{"read": 200, "all": 200, "key": 403, "item": 403, "forged": 401}},
		{"create", "POST", docs, `{"id":"3","pk":"a"}`, `["a"]`, map[string]int{"read": 403, "item": 403, "all": 201, "key": 409, "forged": 401}},
		{"replace", "PUT", docs + "/1", `{"id":"1","pk":"a"}`, `["a"]`, map[string]int{"read": 403, "all": 200, "key": 200, "item": 200, "forged": 401}},
		{"another container", "GET", "dbs/db/colls/other", "", "", map[string]int{"read": 403, "all": 403, "key": 403, "item": 403, "forged": 401}},
		{"deletion of the container", "DELETE", "dbs/db/colls/c", "", "", map[string]int{"read": 403, "all": 403, "key": 403, "item": 403, "forged": 401}},
		{"users", "GET", "dbs/db/users", "", "", map[string]int{"read": 403, "all": 403, "key": 403, "item": 403, "forged": 401}},
	} {
		for _, name := range []string{"read", "all", "key", "item", "forged"} {
			if got := with(t, srv, tokens[name], call.method, call.path, call.body, call.key); got != call.want[name] {
				t.Errorf("%s with token %s: %d, want %d", call.what, name, got, call.want[name])
			}
		}
	}
	// The operations of a bulk have keys of their own, which may differ from the header.
	bulk, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.Endpoint()+docs,
		strings.NewReader(`[{"operationType":"Delete","id":"2","partitionKey":"[\"b\"]"}]`))
	must(t, err)
	for name, value := range map[string]string{
		"authorization": url.QueryEscape(tokens["key"]), "x-ms-documentdb-partitionkey": `["a"]`,
		"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-documentdb-partitionkeyrangeid": "0",
	} {
		bulk.Header.Set(name, value)
	}
	r, err := srv.HTTPClient().Do(bulk)
	must(t, err)
	must(t, r.Body.Close())
	if r.StatusCode != http.StatusForbidden {
		t.Errorf("a bulk with a token of one key: %d", r.StatusCode)
	}
	short := permit(t, srv, `{"id":"short","permissionMode":"Read","resource":"dbs/db/colls/c"}`, map[string]string{"x-ms-documentdb-expiry-seconds": "60"})
	srv.Advance(61 * time.Second)
	if got := with(t, srv, short, "GET", docs+"/1", "", `["a"]`); got != http.StatusForbidden {
		t.Errorf("an expired token: %d", got)
	}
	if got := with(t, srv, tokens["read"], "GET", docs+"/1", "", `["a"]`); got != http.StatusOK {
		t.Errorf("a token of an hour, a minute later: %d", got)
	}
}

// Users survive a restart, and are deleted with their database.
func TestUsersSurviveRestart(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		do   func(*cosmosemu.Server)
		want int
	}{
		{func(srv *cosmosemu.Server) {
			must(t, srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}))
			send(t, srv, http.MethodPost, "dbs/db/users", `{"id":"u"}`, nil)
			permit(t, srv, `{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}`, nil)
		}, 200},
		{func(srv *cosmosemu.Server) {}, 200},
		{func(srv *cosmosemu.Server) {
			send(t, srv, http.MethodDelete, "dbs/db", "", nil)
			must(t, srv.CreateDatabase("db"))
		}, 404},
		{func(srv *cosmosemu.Server) {}, 404},
	} {
		srv, err := cosmosemu.Start(&cosmosemu.Options{DataDir: dir})
		must(t, err)
		step.do(srv)
		if r := send(t, srv, http.MethodGet, "dbs/db/users/u/permissions/p", "", nil); r.StatusCode != step.want {
			t.Errorf("%d %s, want %d", r.StatusCode, r.Body, step.want)
		}
		must(t, srv.Close())
	}
}
