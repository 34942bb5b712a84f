package cosmosemu_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/operator/plan"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// start starts an emulator with a database "db" and a container "c" on /pk.
func start(t *testing.T, o *cosmosemu.Options, props ...cosmosemu.ContainerProps) (*cosmosemu.Server, *azcosmos.ContainerClient) {
	t.Helper()
	srv := cosmosemu.StartT(t, o)
	p := cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}, DefaultTTL: -1}
	if len(props) > 0 {
		p = props[0]
	}
	if err := srv.CreateContainer("db", p); err != nil {
		t.Fatal(err)
	}
	return srv, containerOf(t, srv, "c")
}

func containerOf(t *testing.T, srv *cosmosemu.Server, id string) *azcosmos.ContainerClient {
	t.Helper()
	c, err := srv.Client().NewContainer("db", id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func doc(id, pk string, more ...any) []byte {
	m := map[string]any{"id": id, "pk": pk}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func key(pk string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(pk) }

// status returns the HTTP status of an error, 0 for none.
func status(err error) int {
	var re *azcore.ResponseError
	if errors.As(err, &re) {
		return re.StatusCode
	}
	if err != nil {
		return -1
	}
	return 0
}

func wantStatus(t *testing.T, what string, err error, want int) {
	t.Helper()
	if got := status(err); got != want {
		t.Errorf("%s: status %d, want %d (%v)", what, got, want, err)
	}
}

func TestItemLifecycle(t *testing.T) {
	_, c := start(t, nil)
	ctx := t.Context()
	created, err := c.CreateItem(ctx, key("a"), doc("1", "a", "n", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(created.Value) != 0 || created.ETag == "" || created.SessionToken == nil || created.RequestCharge <= 0 {
		t.Errorf("create: body %q, etag %q, session %v, charge %v", created.Value, created.ETag, created.SessionToken, created.RequestCharge)
	}
	_, err = c.CreateItem(ctx, key("a"), doc("1", "a"), nil)
	wantStatus(t, "create again", err, http.StatusConflict)
	if _, err := c.CreateItem(ctx, key("b"), doc("1", "b"), nil); err != nil {
		t.Errorf("the same id in another logical partition: %v", err)
	}

	read, err := c.ReadItem(ctx, key("a"), "1", &azcosmos.ItemOptions{SessionToken: created.SessionToken})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		ID   string `json:"id"`
		N    int    `json:"n"`
		ETag string `json:"_etag"`
		RID  string `json:"_rid"`
		Self string `json:"_self"`
		TS   int64  `json:"_ts"`
	}
	if err := json.Unmarshal(read.Value, &body); err != nil {
		t.Fatal(err)
	}
	if body.N != 1 || body.ETag != string(read.ETag) || read.ETag != created.ETag || body.RID == "" || body.Self == "" || body.TS == 0 {
		t.Errorf("read %s with etag %s after create with %s", read.Value, read.ETag, created.ETag)
	}

	old := created.ETag
	replaced, err := c.ReplaceItem(ctx, key("a"), "1", read.Value, &azcosmos.ItemOptions{IfMatchEtag: &old, EnableContentResponseOnWrite: true})
	if err != nil {
		t.Fatal(err)
	}
	if replaced.ETag == old || len(replaced.Value) == 0 {
		t.Errorf("replace: etag %s as before, body %q", replaced.ETag, replaced.Value)
	}
	for what, write := range map[string]func() error{
		"replace": func() error {
			_, err := c.ReplaceItem(ctx, key("a"), "1", doc("1", "a"), &azcosmos.ItemOptions{IfMatchEtag: &old})
			return err
		},
		"upsert": func() error {
			_, err := c.UpsertItem(ctx, key("a"), doc("1", "a"), &azcosmos.ItemOptions{IfMatchEtag: &old})
			return err
		},
		"delete": func() error {
			_, err := c.DeleteItem(ctx, key("a"), "1", &azcosmos.ItemOptions{IfMatchEtag: &old})
			return err
		},
	} {
		wantStatus(t, what+" with a stale etag", write(), http.StatusPreconditionFailed)
	}
	if _, err := c.DeleteItem(ctx, key("a"), "1", &azcosmos.ItemOptions{IfMatchEtag: &replaced.ETag}); err != nil {
		t.Errorf("delete: %v", err)
	}
	_, err = c.ReadItem(ctx, key("a"), "1", nil)
	wantStatus(t, "read after delete", err, http.StatusNotFound)
	_, err = c.ReplaceItem(ctx, key("a"), "1", doc("1", "a"), nil)
	wantStatus(t, "replace after delete", err, http.StatusNotFound)
	_, err = c.DeleteItem(ctx, key("a"), "1", nil)
	wantStatus(t, "delete after delete", err, http.StatusNotFound)
	up, err := c.UpsertItem(ctx, key("a"), doc("1", "a"), nil)
	if err != nil || up.RawResponse.StatusCode != http.StatusCreated {
		t.Errorf("upsert of a new item: %v", err)
	}
	up, err = c.UpsertItem(ctx, key("a"), doc("1", "a"), nil)
	if err != nil || up.RawResponse.StatusCode != http.StatusOK {
		t.Errorf("upsert of an old item: %v", err)
	}
}

// The figures are those of Microsoft Learn, "Understand request unit consumption". The rows with
// fractions lie between two of them.
func TestItemsAreChargedByTheTableOfTheService(t *testing.T) {
	srv, _ := start(t, nil)
	for _, row := range []struct {
		size        int
		read, write float64
	}{
		{300, 1.00, 4.95},
		{1 << 10, 1.00, 4.95},
		{2 << 10, 1.04, 6.29},
		{3 << 10, 1.09, 6.48},
		{4 << 10, 1.14, 6.67},
		{8 << 10, 1.33, 7.04},
		{16 << 10, 1.67, 9.52},
		{32 << 10, 2.19, 11.23},
		{64 << 10, 4.76, 22.67},
		{100 << 10, 7.68, 37.03},
		{128 << 10, 9.95, 48.19},
		{256 << 10, 20.28, 98.29},
		{512 << 10, 40.95, 184.57},
		{1 << 20, 145.90, 625.00},
		{3 << 19, 218.85, 937.50},
	} {
		var write, read answer
		pad := 0
		for range 2 { // the second time with the size that the system properties leave
			body := fmt.Sprintf(`{"id":"1","pk":"a","pad":%q}`, strings.Repeat("x", pad))
			write = send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", body, map[string]string{"x-ms-documentdb-partitionkey": `["a"]`, "x-ms-documentdb-is-upsert": "True"})
			read = send(t, srv, http.MethodGet, "dbs/db/colls/c/docs/1", "", inA)
			pad += row.size - len(read.Body)
		}
		if len(read.Body) != row.size {
			t.Fatalf("%d %.200s: %d bytes, want %d", write.StatusCode, write.Body, len(read.Body), row.size)
		}
		for what, c := range map[string]struct {
			header http.Header
			want   float64
		}{"read": {read.Header, row.read}, "write": {write.Header, row.write}} {
			got, err := strconv.ParseFloat(c.header.Get("x-ms-request-charge"), 64)
			if err != nil || math.Abs(got-c.want) > 0.0101 {
				t.Errorf("a %s of %d bytes: %v RU, want %v", what, row.size, got, c.want)
			}
		}
	}
}

// feedbox plan promises the request units that the emulator charges.
func TestThePlannerChargesAsTheEmulatorDoes(t *testing.T) {
	srv, _ := start(t, nil)
	for _, size := range []int{300, 1000, 3 << 10, 100 << 10, 3 << 19} {
		body := fmt.Sprintf(`{"id":"%d","pk":"a","pad":%q}`, size, strings.Repeat("x", size-200))
		write := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", body, inA)
		read := send(t, srv, http.MethodGet, fmt.Sprintf("dbs/db/colls/c/docs/%d", size), "", inA)
		wantRead, wantWrite := plan.Charge(len(read.Body))
		for what, c := range map[string]struct {
			header http.Header
			want   float64
		}{"read": {read.Header, wantRead}, "write": {write.Header, wantWrite}} {
			if got, err := strconv.ParseFloat(c.header.Get("x-ms-request-charge"), 64); err != nil || math.Abs(got-c.want) > 0.0051 {
				t.Errorf("a %s of %d bytes: %v RU, the planner says %v", what, len(read.Body), got, c.want)
			}
		}
	}
	changes := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0"})
	all := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"query":"SELECT * FROM c"}`, map[string]string{"x-ms-documentdb-isquery": "True", "Content-Type": "application/query+json", "x-ms-documentdb-partitionkey": `["a"]`})
	for what, c := range map[string]struct {
		answer
		charge func(kb float64) float64
	}{
		"a read of the change feed": {changes, func(kb float64) float64 { return plan.FeedCharge(1, 5, kb) }},
		"a query":                   {all, func(kb float64) float64 { return plan.QueryCharge(5, kb) }},
	} {
		want := c.charge(math.Ceil(float64(len(c.Body)) / 1024))
		if got, err := strconv.ParseFloat(c.Header.Get("x-ms-request-charge"), 64); err != nil || math.Abs(got-want) > 0.0051 {
			t.Errorf("%s, status %d, %d bytes: %v RU, the planner says %v", what, c.StatusCode, len(c.Body), got, want)
		}
	}
}

func TestBadItemsAreRefused(t *testing.T) {
	_, c := start(t, nil)
	ctx := t.Context()
	big := fmt.Appendf(nil, `{"id":"big","pk":"a","x":"%02097152d"}`, 1)
	for what, c400 := range map[string]struct {
		body []byte
		want int
	}{
		"no id":           {[]byte(`{"pk":"a"}`), 400},
		"empty id":        {[]byte(`{"id":"","pk":"a"}`), 400},
		"not JSON":        {[]byte(`{"id":"1","pk":"a"`), 400},
		"not an object":   {[]byte(`[1]`), 400},
		"other key":       {doc("1", "b"), 400},
		"no key":          {[]byte(`{"id":"1"}`), 400},
		"key not scalar":  {[]byte(`{"id":"1","pk":["a"]}`), 400},
		"ttl 0":           {[]byte(`{"id":"1","pk":"a","ttl":0}`), 400},
		"more than 2 MB":  {big, 413},
		"id of 1024 byte": {doc(fmt.Sprintf("%01024d", 1), "a"), 400},
	} {
		_, err := c.CreateItem(ctx, key("a"), c400.body, nil)
		wantStatus(t, what, err, c400.want)
	}
	_, err := c.CreateItem(ctx, azcosmos.NewPartitionKey(), doc("1", "a"), nil)
	wantStatus(t, "no key header", err, 400)
	if _, err = c.CreateItem(ctx, azcosmos.NullPartitionKey, []byte(`{"id":"1","pk":null}`), nil); err != nil {
		t.Errorf("null key: %v", err)
	}
}

func TestWrongKeyIs401(t *testing.T) {
	srv := cosmosemu.StartT(t)
	cred, err := azcosmos.NewKeyCredential("d3Jvbmc=")
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(srv.Endpoint(), cred, srv.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, nil)
	wantStatus(t, "wrong key", err, http.StatusUnauthorized)
}

// TestTriggersAreRefused: the emulator runs no triggers, so a write that needs one must not pass
// without it.
func TestTriggersAreRefused(t *testing.T) {
	_, c := start(t, nil)
	for _, o := range []azcosmos.ItemOptions{{PreTriggers: []string{"validate"}}, {PostTriggers: []string{"audit"}}} {
		_, err := c.CreateItem(t.Context(), key("a"), doc("1", "a"), &o)
		wantStatus(t, "a write with a trigger", err, http.StatusBadRequest)
	}
	_, err := c.ReadItem(t.Context(), key("a"), "1", nil)
	wantStatus(t, "the item", err, http.StatusNotFound)
}
