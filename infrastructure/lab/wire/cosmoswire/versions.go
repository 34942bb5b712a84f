package cosmoswire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
)

// with adds headers to the requests of one read, in place of those of the client.
func (p *probe) with(headers map[string]string) context.Context {
	h := http.Header{}
	for name, value := range headers {
		h.Set(name, value)
	}
	return policy.WithHTTPHeader(p.ctx, h)
}

// version is an entry of the feed of all versions and deletes.
type version struct {
	Current, Previous *document
	Metadata          struct {
		LSN              int64             `json:"lsn"`
		Created          int64             `json:"crts"`
		Operation        string            `json:"operationType"`
		PreviousImageLSN int64             `json:"previousImageLSN"`
		ID               string            `json:"id"`
		PartitionKey     map[string]string `json:"partitionKey"`
	}
}

// versions reads one page of each range, from its position or from now. It ends the script if the
// container keeps no versions, of which nothing is known then.
func (p *probe) versions(from map[azcosmos.FeedRange]string) (entries []version, end map[azcosmos.FeedRange]string) {
	ranges, err := p.items.ReadFeedRanges(p.ctx, nil)
	p.must("read the feed ranges", err)
	end = map[azcosmos.FeedRange]string{}
	for _, r := range ranges {
		position := "*"
		if from != nil {
			position = from[r]
		}
		page, err := p.items.ReadChangeFeed(p.with(map[string]string{
			"A-IM": "Full-Fidelity Feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15", "If-None-Match": position,
		}), &azcosmos.ChangeFeedOptions{FeedRange: &r})
		if status(err, http.StatusOK) == http.StatusBadRequest && from == nil {
			err = errors.New("the account keeps no versions, because it has no continuous backup: " + err.Error())
		}
		p.must("read all versions and deletes", err)
		for _, raw := range page.Items {
			var v version
			p.must("decode a version", json.Unmarshal(raw, &v))
			entries = append(entries, v)
		}
		end[r] = string(page.ETag)
	}
	return entries, end
}

var versionScripts = []Script{
	{Name: "feed-versions", Topic: "change-feed-versions", Source: "Learn, Change feed modes; .NET SDK, ChangeFeedMetadata; Java SDK, ChangeFeedProcessorItem", run: func(p *probe) {
		p.create("a", "early")
		_, now := p.versions(nil)
		p.create("a", "1", `"n":1`)
		_, err := p.items.ReplaceItem(p.ctx, key("a"), "1", item("a", "1", `"n":2`), nil)
		p.must("replace", err)
		_, err = p.items.DeleteItem(p.ctx, key("a"), "1", nil)
		p.must("delete", err)
		entries, _ := p.versions(now)
		var operations []string
		for i := range entries {
			operations = append(operations, entries[i].Metadata.Operation)
			p.expect(entries[i].Metadata.LSN > 0 && entries[i].Metadata.Created > 0, "entry %d has lsn %d and crts %d", i, entries[i].Metadata.LSN, entries[i].Metadata.Created)
		}
		p.expect(slices.Equal(operations, []string{"create", "replace", "delete"}), "operations %v", operations)
		if len(entries) != 3 {
			p.Stop()
		}
		created, replaced, deleted := &entries[0], &entries[1], &entries[2]
		p.expect(created.Current != nil && created.Current.N == 1 && replaced.Current != nil && replaced.Current.N == 2, "the versions are %+v and %+v", created.Current, replaced.Current)
		p.expect(replaced.Metadata.PreviousImageLSN == created.Metadata.LSN, "the version before is that of LSN %d, want %d", replaced.Metadata.PreviousImageLSN, created.Metadata.LSN)
		p.expect(created.Previous == nil && replaced.Previous == nil && deleted.Previous != nil && deleted.Previous.N == 2, "previous images %+v, %+v, %+v: want one of the deletion only", created.Previous, replaced.Previous, deleted.Previous)
		p.expect(deleted.Metadata.ID == "1" && deleted.Metadata.PartitionKey["pk"] == "a", "a deletion names the item %q and the key %v", deleted.Metadata.ID, deleted.Metadata.PartitionKey)
	}},
	{Name: "feed-from-zero", Topic: "change-feed", Source: ".NET SDK, ChangeFeedProcessor, which continues a lease of ours at this position", run: func(p *probe) {
		for i := range 3 {
			p.create("a", fmt.Sprint(i))
		}
		f := p.feed()
		r := f.of("a")
		page, err := f.feed.Read(p.with(map[string]string{"If-None-Match": `"0"`}), changefeed.ReadRequest{Range: r, MaxItems: 100})
		p.must("read from the position 0", err)
		p.expect(slices.Equal(sorted(f.changes(page)), []string{"0", "1", "2"}), "from the position 0: %v, want 0 1 2", sorted(f.changes(page)))
	}},
}
