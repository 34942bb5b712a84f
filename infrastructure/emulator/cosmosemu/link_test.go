package cosmosemu_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// sendSigned sends a request whose signed type and link are given.
func sendSigned(t *testing.T, srv *cosmosemu.Server, method, path, kind, link, body string, headers map[string]string) answer {
	t.Helper()
	secret, err := base64.StdEncoding.DecodeString(srv.Key())
	if err != nil {
		t.Fatal(err)
	}
	date := strings.ToLower(time.Now().UTC().Format(http.TimeFormat))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.ToLower(method) + "\n" + kind + "\n" + link + "\n" + date + "\n\n"))
	all := map[string]string{
		"x-ms-date":     date,
		"authorization": url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil))),
	}
	for name, value := range headers {
		all[name] = value
	}
	return send(t, srv, method, path, body, all)
}

// resourceID returns the _rid in a reply.
func resourceID(t *testing.T, r answer) string {
	t.Helper()
	var in struct {
		RID string `json:"_rid"`
	}
	if err := json.Unmarshal([]byte(r.Body), &in); err != nil || in.RID == "" {
		t.Fatalf("no resource id in %d %s", r.StatusCode, r.Body)
	}
	return in.RID
}

// The Java and .NET SDKs name resources by their resource ids and sign only the last one.
func TestResourceIDLinks(t *testing.T) {
	srv, c := start(t, nil)
	if _, err := c.CreateItem(t.Context(), key("a"), doc("1", "a"), nil); err != nil {
		t.Fatal(err)
	}
	pk := map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}
	item := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/1", "", pk)
	db, coll, doc := resourceID(t, send(t, srv, http.MethodGet, "dbs/db", "", nil)), resourceID(t, send(t, srv, http.MethodGet, "dbs/db/colls/c", "", nil)), resourceID(t, item)
	container := "dbs/" + db + "/colls/" + coll
	query := map[string]string{"x-ms-documentdb-query": "True", "x-ms-documentdb-query-enablecrosspartition": "True", "content-type": "application/query+json"}
	for _, r := range []struct {
		method, path, kind, signed, body string
		headers                          map[string]string
		want                             int
	}{
		{"GET", "dbs/" + db, "dbs", db, "", nil, 200},
		{"GET", "dbs/" + db + "/colls", "colls", db, "", nil, 200},
		{"GET", container, "colls", coll, "", nil, 200},
		{"GET", container + "/pkranges", "pkranges", coll, "", nil, 200},
		{"GET", container + "/docs/" + doc, "docs", doc, "", pk, 200},
		{"PUT", container + "/docs/" + doc, "docs", doc, `{"id":"1","pk":"a","n":7}`, pk, 200},
		{"PATCH", container + "/docs/" + doc, "docs", doc, `{"operations":[{"op":"set","path":"/n","value":8}]}`, pk, 200},
		{"POST", container + "/docs", "docs", coll, `{"id":"2","pk":"a"}`, pk, 201},
		{"POST", container + "/docs", "docs", coll, `{"query":"SELECT * FROM c"}`, query, 200},
		{"GET", container + "/docs", "docs", coll, "", map[string]string{"A-IM": "Incremental Feed"}, 200},
		{"DELETE", container + "/docs/" + doc, "docs", doc, "", pk, 204},
		{"GET", container + "/docs/" + doc, "docs", doc, "", pk, 404},
		{"GET", "dbs/" + db + "/colls/" + coll[:8] + "xxxx", "colls", coll[:8] + "xxxx", "", nil, 404},
		{"GET", "dbs/AAAAAA==/colls/AAAAAIAAAAA=", "colls", "AAAAAIAAAAA=", "", nil, 404},
		{"DELETE", container, "colls", coll, "", nil, 204},
		{"DELETE", "dbs/" + db, "dbs", db, "", nil, 204},
	} {
		got := sendSigned(t, srv, r.method, r.path, r.kind, strings.ToLower(r.signed), r.body, r.headers)
		if got.StatusCode != r.want {
			t.Errorf("%s %s: %d %s, want %d", r.method, r.path, got.StatusCode, got.Body, r.want)
		}
	}
}

// A signature of the whole link, or of the last id in its original case, is refused.
func TestResourceIDLinksSignTheLastID(t *testing.T) {
	srv, _ := start(t, nil)
	coll := resourceID(t, send(t, srv, http.MethodGet, "dbs/db/colls/c", "", nil))
	db := resourceID(t, send(t, srv, http.MethodGet, "dbs/db", "", nil))
	path := "dbs/" + db + "/colls/" + coll
	for _, signed := range []string{path, strings.ToLower(path), strings.ToLower(db), ""} {
		if r := sendSigned(t, srv, http.MethodGet, path, "colls", signed, "", nil); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("signed %q: %d", signed, r.StatusCode)
		}
	}
}

// The .NET SDK compares some header names by exact spelling, so they must be in lower case.
func TestReplyHeadersAreInLowerCase(t *testing.T) {
	srv, c := start(t, nil)
	if _, err := c.CreateItem(t.Context(), key("a"), doc("1", "a"), nil); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The request uses an AAD token, because any well-formed one is accepted.
	_, _ = conn.Write([]byte("GET /dbs/db/colls/c/docs/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
		"Authorization: type=aad&ver=1.0&sig=e30.e30.x\r\nx-ms-documentdb-partitionkey: [\"a\"]\r\n\r\n"))
	lines := bufio.NewScanner(conn)
	seen := map[string]bool{}
	for lines.Scan() && lines.Text() != "" {
		name, _, _ := strings.Cut(lines.Text(), ":")
		seen[name] = true
		if lower := strings.ToLower(name); lower != name && (strings.HasPrefix(lower, "x-ms-") || lower == "etag") {
			t.Errorf("header %s", name)
		}
	}
	for _, name := range []string{"x-ms-request-charge", "x-ms-session-token", "x-ms-activity-id", "etag"} {
		if !seen[name] {
			t.Errorf("no header %s in %v", name, seen)
		}
	}
}

// Java's pull feed reads the content paths, and .NET's reads the count of an empty page.
func TestRepliesContainParentAndCount(t *testing.T) {
	srv, _ := start(t, nil)
	coll := resourceID(t, send(t, srv, http.MethodGet, "dbs/db/colls/c", "", nil))
	feed := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{"A-IM": "Incremental Feed"})
	if feed.StatusCode != http.StatusNotModified || feed.Header.Get("x-ms-item-count") != "0" {
		t.Errorf("empty page: %d, item count %q", feed.StatusCode, feed.Header.Get("x-ms-item-count"))
	}
	if got := feed.Header.Get("x-ms-alt-content-path"); got != "dbs/db/colls/c" {
		t.Errorf("alternative content path %q", got)
	}
	if got := feed.Header.Get("x-ms-content-path"); got != coll {
		t.Errorf("content path %q, the container is %q", got, coll)
	}
	own := send(t, srv, http.MethodGet, "dbs/db/colls/c", "", nil)
	if got := own.Header.Get("x-ms-alt-content-path"); got != "dbs/db" {
		t.Errorf("alternative content path %q of a container", got)
	}
}

func TestPartitionKeyVersionAsText(t *testing.T) {
	srv, _ := start(t, nil)
	for version, want := range map[string]int{`"V1"`: 201, `"V2"`: 201, `"V3"`: 400, `3`: 400} {
		body := `{"id":"t` + strings.Trim(version, `"`) + `","partitionKey":{"paths":["/pk"],"kind":"Hash","version":` + version + `}}`
		if r := send(t, srv, http.MethodPost, "dbs/db/colls", body, nil); r.StatusCode != want {
			t.Errorf("version %s: %d %s, want %d", version, r.StatusCode, r.Body, want)
		}
	}
}

// The .NET SDK does not escape a question mark in an id.
func TestQuestionMarkInAPath(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "a?b", "a")
	r := sendSigned(t, srv, http.MethodGet, "dbs/db/colls/c/docs/a?b", "docs", "dbs/db/colls/c/docs/a?b", "", map[string]string{"x-ms-documentdb-partitionkey": `["a"]`})
	if r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.Body)
	}
}

// The authorization of one request is valid for no other one, whether it was used before or not.
func TestSignatureIsValidForOneRequest(t *testing.T) {
	srv, _ := start(t, nil)
	must(t, srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "other", PartitionKey: []string{"/pk"}}))
	first := make(chan http.Header, 1)
	srv.Control(cosmosemu.OpAny, func(call *cosmosemu.Call) *cosmosemu.Fault {
		select {
		case first <- call.Header.Clone():
		default:
		}
		return nil
	})
	create := func(method, container string, changed map[string]string) int {
		return send(t, srv, method, "dbs/db/colls/"+container+"/docs", `{"id":"a","pk":"a"}`, changed).StatusCode
	}
	partition := map[string]string{"x-ms-documentdb-partitionkey": `["a"]`, "x-ms-documentdb-is-upsert": "true"}
	if got := create(http.MethodPost, "c", partition); got != http.StatusCreated {
		t.Fatal(got)
	}
	header := <-first
	signed := map[string]string{
		"authorization": header.Get("authorization"), "x-ms-date": header.Get("x-ms-date"),
		"x-ms-documentdb-partitionkey": `["a"]`, "x-ms-documentdb-is-upsert": "true",
	}
	for range 2 { // the first repeats it, the second finds it remembered
		if got := create(http.MethodPost, "c", signed); got != http.StatusOK {
			t.Errorf("the same request gets %d, want 200", got)
		}
		if got := create(http.MethodPost, "other", signed); got != http.StatusUnauthorized {
			t.Errorf("another container gets %d, want 401", got)
		}
		if got := create(http.MethodGet, "c", signed); got != http.StatusUnauthorized {
			t.Errorf("another method gets %d, want 401", got)
		}
		later := maps.Clone(signed)
		later["x-ms-date"] = "Thu, 27 Apr 2017 00:51:12 GMT"
		if got := create(http.MethodPost, "c", later); got != http.StatusUnauthorized {
			t.Errorf("another date gets %d, want 401", got)
		}
	}
}
