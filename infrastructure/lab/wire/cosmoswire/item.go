package cosmoswire

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	restDocuments = "REST reference, Documents (create, replace, delete: status codes)"
	restTTL       = "Learn, Time to live in Azure Cosmos DB"
	restHeaders   = "REST reference, Common Azure Cosmos DB REST response headers"
	learnLimits   = "Learn, Azure Cosmos DB service quotas"
)

var itemScripts = []Script{
	{Name: "item-create-conflict", Source: restDocuments, run: func(p *probe) {
		p.create("a", "1")
		_, err := p.items.CreateItem(p.ctx, key("a"), item("a", "1"), nil)
		p.expect(status(err, 201) == http.StatusConflict, "a second create of an id: %d, want 409", status(err, 201))
		_, err = p.items.CreateItem(p.ctx, key("b"), item("b", "1"), nil)
		p.expect(err == nil, "the same id under another partition key: %v", err)
		p.expect(p.read("c", "1") == http.StatusNotFound, "read of what is not there: want 404")
	}},
	{Name: "item-if-match", Topic: "etag-conditions", Source: "REST reference, Documents (If-Match); Learn, Optimistic concurrency control", run: func(p *probe) {
		old := p.create("a", "1", `"n":1`)
		reply, err := p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1", `"n":2`), &azcosmos.ItemOptions{IfMatchEtag: &old})
		p.must("replace with the current ETag", err)
		_, err = p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1", `"n":3`), &azcosmos.ItemOptions{IfMatchEtag: &old})
		p.expect(status(err, 200) == http.StatusPreconditionFailed, "replace with an old ETag: %d, want 412", status(err, 200))
		_, err = p.items.DeleteItem(p.ctx, key("a"), "1", &azcosmos.ItemOptions{IfMatchEtag: &old})
		p.expect(status(err, 204) == http.StatusPreconditionFailed, "delete with an old ETag: %d, want 412", status(err, 204))
		_, err = p.items.DeleteItem(p.ctx, key("a"), "1", &azcosmos.ItemOptions{IfMatchEtag: &reply.ETag})
		p.expect(err == nil, "delete with the current ETag: %v", err)
	}},
	{Name: "item-etags", Topic: "etag-conditions", Source: "REST reference, Documents (_etag); azcosmos cosmos_item_response.go", run: func(p *probe) {
		seen := map[azcore.ETag]bool{}
		for _, write := range []func() (azcosmos.ItemResponse, error){
			func() (azcosmos.ItemResponse, error) { return p.items.CreateItem(p.ctx, key("a"), item("a", "1"), nil) },
			func() (azcosmos.ItemResponse, error) {
				return p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1", `"n":1`), nil)
			},
			func() (azcosmos.ItemResponse, error) {
				return p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1"), nil)
			},
			func() (azcosmos.ItemResponse, error) {
				return p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1"), nil)
			},
			func() (azcosmos.ItemResponse, error) {
				_, err := p.items.DeleteItem(p.ctx, key("a"), "1", nil)
				p.must("delete", err)
				return p.items.CreateItem(p.ctx, key("a"), item("a", "1"), nil)
			},
		} {
			reply, err := write()
			p.must("write", err)
			p.expect(reply.ETag != "" && !seen[reply.ETag], "a write gave the ETag %q, which is empty or not new", reply.ETag)
			p.expect(strings.HasPrefix(string(reply.ETag), `"`), "the ETag %s has no quotes", reply.ETag)
			p.expect(len(reply.Value) == 0, "the body of a write under Prefer: return=minimal is not empty")
			seen[reply.ETag] = true
			got, err := p.items.ReadItem(p.ctx, key("a"), "1", nil)
			p.must("read", err)
			stored := p.documents([][]byte{got.Value})[0]
			p.expect(got.ETag == reply.ETag && stored.ETag == string(reply.ETag), "the write gave the ETag %s, a read %s, the document says %s", reply.ETag, got.ETag, stored.ETag)
		}
	}},
	{Name: "item-values-are-kept", Source: "Learn, Work with JSON in Azure Cosmos DB (numbers are IEEE 754 doubles)", run: func(p *probe) {
		const want = `{"text":"ünï \u0001 😀 \" \\ / \u2028","big":9007199254740991,"small":-0.125,"null":null,"deep":[[{"a":[]}]],"":"empty name"}`
		p.create("a", "1", `"data":`+want)
		got, err := p.items.ReadItem(p.ctx, key("a"), "1", nil)
		p.must("read", err)
		var stored struct{ Data json.RawMessage }
		p.must("decode", json.Unmarshal(got.Value, &stored))
		p.expect(sameValue([]byte(want), stored.Data), "stored %s\nread   %s", want, stored.Data)
	}},
	{Name: "item-size-limit", Topic: "batch-limits", Source: learnLimits + " (2 MB an item)", run: func(p *probe) {
		_, err := p.items.CreateItem(p.ctx, key("a"), item("a", "large", `"text":"`+strings.Repeat("x", 1_900_000)+`"`), nil)
		p.expect(err == nil, "an item of 1.9 MB: %v", err)
		_, err = p.items.CreateItem(p.ctx, key("a"), item("a", "larger", `"text":"`+strings.Repeat("x", 2_200_000)+`"`), nil)
		p.expect(status(err, 201) == http.StatusRequestEntityTooLarge, "an item of 2.2 MB: %d, want 413", status(err, 201))
	}},
	{Name: "item-session-token", Source: "Learn, Consistency levels (session); .NET SDK, SessionTokenHelper", run: func(p *probe) {
		reply, err := p.items.CreateItem(p.ctx, key("a"), item("a", "1"), nil)
		p.must("create", err)
		token := reply.SessionToken
		if token == nil || !strings.Contains(*token, ":") || !strings.Contains(*token, "#") {
			p.expect(false, "the session token of a write is %v, want range:version#lsn", token)
			return
		}
		_, err = p.items.ReadItem(p.ctx, key("a"), "1", &azcosmos.ItemOptions{SessionToken: token})
		p.expect(err == nil, "a read with the write's session token: %v", err)
		_, err = p.items.ReadItem(p.ctx, key("a"), "2", &azcosmos.ItemOptions{SessionToken: token})
		p.expect(status(err, 200) == http.StatusNotFound, "a read of what is not there: %d, want 404", status(err, 200))
		p.expect(headerOf(err, "x-ms-substatus") == "" || headerOf(err, "x-ms-substatus") == "0", "its sub-status is %s, want none or 0", headerOf(err, "x-ms-substatus"))
	}},
	{Name: "item-of-a-missing-container", Source: ".NET SDK, SubStatusCodes (OwnerResourceNotFound); Rust SDK, cosmos_status.rs", run: func(p *probe) {
		absent, err := p.target.Client.NewContainer(p.target.Database, p.name+"-absent")
		p.must("name a container", err)
		_, err = absent.ReadItem(p.ctx, key("a"), "1", nil)
		p.expect(status(err, 200) == http.StatusNotFound && headerOf(err, "x-ms-substatus") == "1003", "an item of a container that does not exist: %d/%s, want 404/1003", status(err, 200), headerOf(err, "x-ms-substatus"))
	}},
	{Name: "ttl-per-item", Topic: "ttl", Source: restTTL, ttl: true, run: func(p *probe) {
		p.create("a", "short", `"ttl":5`)
		p.create("a", "ever", `"ttl":-1`)
		p.create("a", "none")
		p.expect(p.read("a", "short") == http.StatusOK, "an item is gone before its time")
		p.wait("expiry of an item with ttl 5", 20*time.Second, func() bool { return p.read("a", "short") == http.StatusNotFound })
		p.expect(p.read("a", "ever") == http.StatusOK, "an item with ttl -1 has expired")
		p.expect(p.read("a", "none") == http.StatusOK, "an item without ttl has expired")
		_, err := p.items.CreateItem(p.ctx, key("a"), item("a", "short"), nil)
		p.expect(err == nil, "the id of an expired item cannot be used: %v", err)
	}},
	{Name: "ttl-from-the-last-write", Topic: "ttl", Source: restTTL, ttl: true, run: func(p *probe) {
		p.create("a", "1", `"ttl":10`)
		p.pause(6 * time.Second)
		_, err := p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1", `"ttl":10`), nil)
		p.must("replace", err)
		p.pause(6 * time.Second)
		p.expect(p.read("a", "1") == http.StatusOK, "the time to live counts from the first write, not from the last")
	}},
	{Name: "ttl-needs-the-container", Topic: "ttl", Source: restTTL, run: func(p *probe) {
		p.create("a", "1", `"ttl":1`)
		p.pause(2500 * time.Millisecond)
		p.expect(p.read("a", "1") == http.StatusOK, "an item expired in a container whose time to live is off")
	}},
	{Name: "throttled-with-a-time", Source: restHeaders + " (x-ms-retry-after-ms); azcosmos cosmos_client_retry_policy.go", control: true, run: func(p *probe) {
		// One request only, because faults of the control endpoint apply to all containers.
		p.must("set a fault", p.target.Control(p.ctx, "faults", map[string]any{"operation": "PatchItem", "times": 1, "status": 429, "retryAfterMs": 7}))
		p.create("a", "1", `"n":1`)
		var patch azcosmos.PatchOperations
		patch.AppendIncrement("/n", 1)
		_, err := p.items.PatchItem(p.ctx, key("a"), "1", patch, nil)
		p.expect(err == nil, "a throttled request is not sent again by the client: %v", err)
	}},
}
