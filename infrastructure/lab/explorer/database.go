package explorer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/page"
)

func (e *Explorer) database() page.Section {
	return page.Section{
		Path: "database", Title: "Database", Templates: templates, Assets: assets, Style: "explorer.css",
		Views: []page.View{
			{Template: "databases.html", Data: e.databases},
			{Path: "container/{db}/{coll}", Title: "Container", Template: "container.html", Data: e.container},
			{Path: "document/{db}/{coll}", Title: "Document", Template: "document.html", Data: e.document},
			{Path: "feed/{db}/{coll}", Title: "Change feed", Template: "feed.html", Every: time.Second, Data: e.feed},
		},
		Acts: []page.Act{
			{Path: "split", Title: "Split a range", Verb: "Split", AtOnce: true, Do: e.split},
			{Path: "merge", Title: "Merge two ranges", Verb: "Merge", AtOnce: true, Do: e.merge},
			{Path: "replace", Title: "Replace a document", Verb: "Replace", Preview: e.previewReplace, Do: e.replace},
			{Path: "delete", Title: "Delete a document", Verb: "Delete", Danger: true, Preview: e.previewDelete, Do: e.remove},
		},
	}
}

// containerLine is a container in the list.
type containerLine struct {
	Database, Name, Key string
	TTL                 string
	Ranges              []cosmosemu.PartitionKeyRange
}

func (e *Explorer) databases(r *http.Request) (any, error) {
	var lines []containerLine
	databases := e.client.NewQueryDatabasesPager("SELECT * FROM c", nil)
	for databases.More() {
		found, err := databases.NextPage(r.Context())
		if err != nil {
			return nil, cosmosRefused(err)
		}
		for i := range found.Databases {
			db := found.Databases[i].ID
			client, err := e.client.NewDatabase(db)
			if err != nil {
				return nil, err
			}
			containers := client.NewQueryContainersPager("SELECT * FROM c", nil)
			for containers.More() {
				page, err := containers.NextPage(r.Context())
				if err != nil {
					return nil, cosmosRefused(err)
				}
				for j := range page.Containers {
					c := &page.Containers[j]
					line := containerLine{Database: db, Name: c.ID, Key: strings.Join(c.PartitionKeyDefinition.Paths, ", "), TTL: "none"}
					switch {
					case c.DefaultTimeToLive == nil:
					case *c.DefaultTimeToLive < 0:
						line.TTL = "set by documents"
					default:
						line.TTL = (time.Duration(*c.DefaultTimeToLive) * time.Second).String()
					}
					if line.Ranges, err = e.cosmos.PartitionKeyRanges(db, c.ID); err != nil {
						return nil, err
					}
					lines = append(lines, line)
				}
			}
		}
	}
	return lines, nil
}

// found is a container with a page of documents or query results.
type found struct {
	Database, Name string
	Ranges         []rangeLine
	Query, Key     string
	Rows           []row
	Charge         float32
	Took           time.Duration
	Next           string // continuation
	First          bool
	Problem        string // why the query failed
}

// rangeLine is a physical partition with the id of its left neighbour, "" for the first.
type rangeLine struct {
	cosmosemu.PartitionKeyRange
	Left string
}

// Load is the use of the range's share of the throughput.
func (r rangeLine) Load() string {
	if r.Throughput == 0 {
		return "not limited"
	}
	return fmt.Sprintf("%.0f of %.0f RU/s, %d throttled", r.Consumed, r.Throughput, r.Throttled)
}

// row is a document, or another value of a query.
type row struct {
	ID, Key, Type string // empty unless it is a document
	Text          string
}

const everything = "SELECT * FROM c"

func (e *Explorer) container(r *http.Request) (any, error) {
	q := r.URL.Query()
	f := &found{Database: r.PathValue("db"), Name: r.PathValue("coll"), Query: q.Get("query"), Key: q.Get("key"), First: q.Get("next") == ""}
	if f.Query == "" {
		f.Query = everything
	}
	ranges, err := e.cosmos.PartitionKeyRanges(f.Database, f.Name)
	if err != nil {
		return nil, missing("container", "See the list of containers.")
	}
	for i, one := range ranges {
		line := rangeLine{PartitionKeyRange: one}
		if i > 0 {
			line.Left = ranges[i-1].ID
		}
		f.Ranges = append(f.Ranges, line)
	}
	client, err := e.client.NewContainer(f.Database, f.Name)
	if err != nil {
		return nil, err
	}
	paths, err := keyPaths(r.Context(), client)
	if err != nil {
		return nil, cosmosRefused(err)
	}
	options := &azcosmos.QueryOptions{PageSizeHint: pageSize}
	if next := q.Get("next"); next != "" {
		options.ContinuationToken = &next
	}
	key := azcosmos.NewPartitionKey()
	if f.Key != "" {
		if key, err = keyFrom(f.Key); err != nil {
			f.Problem = err.Error()
			return f, nil //nolint:nilerr // the page shows it
		}
	}
	began := time.Now()
	result, err := client.NewQueryItemsPager(f.Query, key, options).NextPage(r.Context())
	f.Took = time.Since(began)
	if err != nil {
		f.Problem = messageOf(err)
		return f, nil
	}
	f.Charge = result.RequestCharge
	if result.ContinuationToken != nil {
		f.Next = *result.ContinuationToken
	}
	for _, raw := range result.Items {
		f.Rows = append(f.Rows, rowOf(raw, paths))
	}
	return f, nil
}

// keyPaths returns the paths of a container's partition key.
func keyPaths(ctx context.Context, c *azcosmos.ContainerClient) ([]string, error) {
	read, err := c.Read(ctx, nil)
	if err != nil {
		return nil, err
	}
	return read.ContainerProperties.PartitionKeyDefinition.Paths, nil
}

// rowOf returns the row of a value. It is a document if it has an id and a resource id.
func rowOf(raw []byte, paths []string) row {
	line := row{Text: brief(string(raw))}
	var document map[string]any
	if json.Unmarshal(raw, &document) != nil {
		return line
	}
	id, named := document["id"].(string)
	if _, own := document["_rid"].(string); !named || !own {
		return line
	}
	line.ID = id
	line.Type, _ = document["type"].(string)
	parts := make([]any, len(paths))
	for i, path := range paths {
		parts[i] = at(document, path)
	}
	key, _ := json.Marshal(parts) // cannot fail: the values come from JSON
	line.Key = string(key)
	return line
}

// at returns the value at a path such as /a/b, nil if there is none.
func at(document map[string]any, path string) any {
	var value any = document
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[strings.Trim(name, `"`)]
	}
	return value
}

// keyFrom parses a partition key: a JSON array of its parts, or the text of a single part.
func keyFrom(text string) (azcosmos.PartitionKey, error) {
	var parts []any
	if json.Unmarshal([]byte(text), &parts) != nil {
		return azcosmos.NewPartitionKeyString(text), nil //nolint:nilerr // a text needs no quotes
	}
	key := azcosmos.NewPartitionKey()
	for _, part := range parts {
		switch v := part.(type) {
		case string:
			key = key.AppendString(v)
		case float64:
			key = key.AppendNumber(v)
		case bool:
			key = key.AppendBool(v)
		case nil:
			key = key.AppendNull()
		default:
			return key, fmt.Errorf("the partition key %s may contain only texts, numbers, true, false and null", text)
		}
	}
	return key, nil
}

// messageOf returns the message of an error of Cosmos DB.
func messageOf(err error) string {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return err.Error()
	}
	var body struct{ Message string }
	if answer.RawResponse != nil {
		_ = json.NewDecoder(answer.RawResponse.Body).Decode(&body) // without a message, the status is enough
	}
	text := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if body.Message != "" {
		first, _, _ := strings.Cut(body.Message, "\r\nActivityId")
		text += ": " + first
	}
	return text
}

func cosmosRefused(err error) error {
	if _, ok := errors.AsType[*azcore.ResponseError](err); !ok {
		return err
	}
	return &page.Refusal{Status: http.StatusBadGateway, Title: "The Cosmos DB emulator refused the request", Detail: messageOf(err) + ".", Next: "Check whether a fault is on."}
}

func (e *Explorer) split(_ context.Context, o *page.Order) error {
	v := o.Values
	return impossible(e.cosmos.Split(v.Get("db"), v.Get("coll"), v.Get("range")))
}

func (e *Explorer) merge(_ context.Context, o *page.Order) error {
	v := o.Values
	return impossible(e.cosmos.Merge(v.Get("db"), v.Get("coll"), v.Get("left"), v.Get("right")))
}

func impossible(err error) error {
	if err == nil {
		return nil
	}
	return &page.Refusal{Status: http.StatusConflict, Title: "That is not possible", Detail: err.Error() + ".", Next: "Nothing was done. Reload the page to see the current state."}
}

// addressOf returns the path of a view of a container.
func addressOf(view string, v url.Values) string {
	return "/database/" + view + "/" + url.PathEscape(v.Get("db")) + "/" + url.PathEscape(v.Get("coll"))
}
