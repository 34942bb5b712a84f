package cosmosemu

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// Throughput decides the number of partitions of a new container, and limits request units with
// Options.Throughput.

// throughput reads the headers with the throughput of a new resource; nil if there are
// none.
func throughput(h http.Header) (json.RawMessage, error) {
	if text := first(h, headerAutopilot); text != "" {
		var settings struct {
			MaxThroughput int `json:"maxThroughput"`
		}
		if err := json.Unmarshal([]byte(text), &settings); err != nil || !isAutoscale(settings.MaxThroughput) {
			return nil, refuse(http.StatusBadRequest, "The autoscale settings %q are invalid: maxThroughput must be a multiple of 1000", text)
		}
		return fmt.Appendf(nil, `{"offerThroughput":%d,"offerAutopilotSettings":%s}`, settings.MaxThroughput/10, text), nil
	}
	text := first(h, headerOfferThroughput)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || !isManual(n) {
		return nil, refuse(http.StatusBadRequest, "The throughput %q is invalid: it must be a multiple of 100, at least 400", text)
	}
	return fmt.Appendf(nil, `{"offerThroughput":%d}`, n), nil
}

// isManual and isAutoscale report whether a throughput, or a highest throughput, can be set.
func isManual(n int) bool    { return n >= 400 && n%100 == 0 }
func isAutoscale(n int) bool { return n >= 1000 && n%1000 == 0 }

// A new container that asks for more than maxPartitionThroughput gets one partition for each
// newPartitionThroughput. Source: test_config.py of azure-cosmos
// 4.17.1, where 12,000 give two partitions and 30,000 five.
const newPartitionThroughput = 6000

// throughputPartitions returns the number of physical partitions for the throughput of a
// new container.
func throughputPartitions(content json.RawMessage) int {
	n := int(offered(content))
	if n <= maxPartitionThroughput {
		return 1
	}
	return min((n+newPartitionThroughput-1)/newPartitionThroughput, maxPartitions)
}

// minThroughput returns the lowest throughput that a client may set.
func minThroughput(content json.RawMessage) string {
	if scalesItself(content) {
		return "1000"
	}
	return "400"
}

// scalesItself reports whether the content of an offer is autoscale throughput.
func scalesItself(content json.RawMessage) bool {
	var in struct {
		Autopilot json.RawMessage `json:"offerAutopilotSettings"`
	}
	return json.Unmarshal(content, &in) == nil && bytes.HasPrefix(in.Autopilot, []byte("{"))
}

// listOffers answers GET /offers with the throughput of all databases and containers.
//
//   - Supports: pages of x-ms-max-item-count; without it all are on one page.
//   - Refuses: an invalid page size or continuation (400).
//   - Source: REST reference, List Offers.
func listOffers(x *request) (*reply, error) {
	return metadataFeed(x, "Offers", "", offerResources(x.account.store), false)
}

// queryOffers answers POST /offers with the offers that match a query. SDKs find the offer
// of a resource in this way.
//
//   - Supports: filters and projections, and pages as listOffers.
//   - Refuses: sorting, joins and aggregates (400).
//   - Source: REST reference, Querying Offers.
func queryOffers(x *request) (*reply, error) {
	return metadataFeed(x, "Offers", "", offerResources(x.account.store), true)
}

// readOffer answers GET /offers/{id} with one offer.
//
//   - Supports: the lowest throughput that can be set, as a header.
//   - Refuses: an unknown offer (404).
//   - Source: REST reference, Get an Offer; .NET's OfferTests.
func readOffer(x *request) (*reply, error) {
	o, err := x.account.store.Offer(x.route.id)
	if err != nil {
		return nil, err
	}
	return offerReply(o), nil
}

// replaceOffer answers PUT /offers/{id} and changes the throughput of a resource.
//
//   - Supports: manual and autoscale throughput; If-Match. It splits nothing.
//   - Refuses: a body without content or with other ids than the offer's, a throughput that a
//     create refuses, manual throughput in place of autoscale (400), an unknown offer (404),
//     another ETag (412).
//   - Source: REST reference, Replace an Offer; .NET's OfferTests.
func replaceOffer(x *request) (*reply, error) {
	o, err := x.account.store.Offer(x.route.id)
	if err != nil {
		return nil, err
	}
	var in struct {
		ID      string          `json:"id"`
		RID     string          `json:"_rid"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil || len(in.Content) == 0 {
		return nil, refuse(http.StatusBadRequest, "The request body is not an offer with a content")
	}
	if in.ID != o.ID || in.RID != o.ID {
		return nil, refuse(http.StatusBadRequest, "The offer in the body has the id %q and the resource id %q, both must be %q", in.ID, in.RID, o.ID)
	}
	if err := checkCatalogMatch(x.header, o.ETag); err != nil {
		return nil, err
	}
	content, err := replacedThroughput(in.Content)
	if err != nil {
		return nil, err
	}
	if scalesItself(o.Content) && !scalesItself(content) { // azure-cosmos-dotnet-v3 issue 1554
		return nil, refuse(http.StatusBadRequest, "x-ms-cosmos-migrate-offer-to-manual-throughput must be supplied and offercontent must contain autopilotSettings "+
			"for migration of autoscale collection to manual throughput. This emulator does not support the migration")
	}
	if o, err = x.account.store.PutOffer(o.RID, o.Resource, content); err != nil {
		return nil, err
	}
	return offerReply(o), nil
}

// replacedThroughput completes the content of an offer, because clients that change
// autoscale settings send only the highest throughput.
func replacedThroughput(content json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Throughput int `json:"offerThroughput"`
		Autopilot  *struct {
			Max int `json:"maxThroughput"`
		} `json:"offerAutopilotSettings"`
	}
	if err := json.Unmarshal(content, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The content of the offer is invalid: %v", err)
	}
	switch {
	case in.Autopilot == nil && !isManual(in.Throughput):
		return nil, refuse(http.StatusBadRequest, "The throughput %d is invalid: it must be a multiple of 100, at least 400", in.Throughput)
	case in.Autopilot == nil:
		return content, nil
	case !isAutoscale(in.Autopilot.Max):
		return nil, refuse(http.StatusBadRequest, "The highest throughput %d is invalid: it must be a multiple of 1000", in.Autopilot.Max)
	}
	text, err := document.Members(content, func(name string, value []byte) bool {
		return name != "offerThroughput" && string(value) != "null"
	})
	if err != nil {
		return nil, fmt.Errorf("read offer: %w", err)
	}
	return fmt.Appendf(nil, `{"offerThroughput":%d,%s}`, in.Autopilot.Max/10, text), nil
}

func offerResources(st *store.Store) (out []resource) {
	for _, o := range st.Offers() {
		out = append(out, resource{o.ID, offerBody(o)})
	}
	return out
}

func offerReply(o *store.Offer) *reply {
	a := ok(http.StatusOK, offerBody(o), metadataCharge)
	a.etag = o.ETag
	a.extra = append(a.extra, headerValue{replyMinThroughput, minThroughput(o.Content)})
	return a
}

func offerBody(o *store.Offer) []byte {
	etag, _ := json.Marshal(o.ETag) // a string never fails
	return fmt.Appendf(nil, `{"id":%q,"_rid":%q,"_self":"offers/%s/","_etag":%s,"_ts":%d,"resource":%q,"offerResourceId":%q,`+
		`"offerVersion":"V2","offerType":"Invalid","content":%s}`, o.ID, o.ID, o.ID, etag, o.ModifiedAt().Unix(), o.Resource, o.RID, o.Content)
}
