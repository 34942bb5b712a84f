package explorer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/page"
)

// document is one stored document.
type document struct {
	Database, Container, ID, Key string
	Text, ETag                   string
	Charge                       float32
	key                          azcosmos.PartitionKey
	client                       *azcosmos.ContainerClient
}

func (e *Explorer) document(r *http.Request) (any, error) {
	v := r.URL.Query()
	v.Set("db", r.PathValue("db"))
	v.Set("coll", r.PathValue("coll"))
	return e.read(r.Context(), v)
}

// read reads the document of the form values db, coll, id and key.
func (e *Explorer) read(ctx context.Context, v url.Values) (*document, error) {
	d := &document{Database: v.Get("db"), Container: v.Get("coll"), ID: v.Get("id"), Key: v.Get("key")}
	var err error
	if d.client, err = e.client.NewContainer(d.Database, d.Container); err != nil {
		return nil, err
	}
	if d.key, err = keyFrom(d.Key); err != nil {
		return nil, impossible(err)
	}
	answer, err := d.client.ReadItem(ctx, d.key, d.ID, nil)
	if err != nil {
		if reply, ok := errors.AsType[*azcore.ResponseError](err); ok && reply.StatusCode == http.StatusNotFound {
			return nil, missing("document", "See the documents of its container.")
		}
		return nil, cosmosRefused(err)
	}
	d.Text, d.ETag, d.Charge = pretty(answer.Value), string(answer.ETag), answer.RequestCharge
	return d, nil
}

func (d *document) facts() []page.Fact {
	return []page.Fact{{Name: "container", Value: d.Database + " / " + d.Container}, {Name: "id", Value: d.ID}, {Name: "partition key", Value: d.Key}, {Name: "ETag", Value: d.ETag}}
}

func (e *Explorer) previewDelete(ctx context.Context, v url.Values) (*page.Preview, error) {
	d, err := e.read(ctx, v)
	if err != nil {
		return nil, err
	}
	return &page.Preview{
		Summary: "The document is deleted from the emulator. The change feed (latest version mode) does not contain deletes.",
		Facts:   d.facts(), Stamp: d.ETag,
	}, nil
}

func (e *Explorer) remove(ctx context.Context, o *page.Order) error {
	d, err := e.read(ctx, o.Values)
	if err != nil {
		return err
	}
	etag := azcore.ETag(d.ETag)
	if _, err := d.client.DeleteItem(ctx, d.key, d.ID, &azcosmos.ItemOptions{IfMatchEtag: &etag}); err != nil {
		return cosmosRefused(err)
	}
	o.Say("deleted " + d.ID)
	o.Next("See the container", addressOf("container", o.Values))
	return nil
}

func (e *Explorer) previewReplace(ctx context.Context, v url.Values) (*page.Preview, error) {
	d, err := e.read(ctx, v)
	if err != nil {
		return nil, err
	}
	text := d.Text
	if given := v.Get("document"); given != "" {
		text = given
	}
	return &page.Preview{
		Summary: "The document is replaced, unless it has changed meanwhile. The change feed contains it like any other change.",
		Facts:   d.facts(), Stamp: d.ETag,
		Fields: []page.Field{{Name: "document", Label: "Document", Value: text, Kind: "area", Required: true, Hint: "JSON. The id and the partition key must stay the same. Cosmos DB sets the members that begin with _."}},
	}, nil
}

func (e *Explorer) replace(ctx context.Context, o *page.Order) error {
	d, err := e.read(ctx, o.Values)
	if err != nil {
		return err
	}
	text := []byte(o.Values.Get("document"))
	if !json.Valid(text) {
		return &page.Refusal{Status: http.StatusBadRequest, Title: "The document is not JSON", Detail: "Nothing was written.", Next: "Go back and correct it."}
	}
	etag := azcore.ETag(d.ETag)
	if _, err := d.client.ReplaceItem(ctx, d.key, d.ID, text, &azcosmos.ItemOptions{IfMatchEtag: &etag}); err != nil {
		return cosmosRefused(err)
	}
	o.Say("replaced " + d.ID)
	o.Next("See the document", addressOf("document", o.Values)+"?"+url.Values{"id": {d.ID}, "key": {d.Key}}.Encode())
	return nil
}
