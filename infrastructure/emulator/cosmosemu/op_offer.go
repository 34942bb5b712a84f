package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// Throughput is kept and returned, and nothing else: the emulator does not limit
// request units.

// throughput reads the headers that give a new resource its throughput; nil if
// there are none.
func (x *exchange) throughput() (json.RawMessage, error) {
	if text := first(x.header, headerAutopilot); text != "" {
		var settings struct {
			MaxThroughput int `json:"maxThroughput"`
		}
		if err := json.Unmarshal([]byte(text), &settings); err != nil || settings.MaxThroughput < 1000 || settings.MaxThroughput%1000 != 0 {
			return nil, refuse(http.StatusBadRequest, "The autoscale settings %q are invalid: maxThroughput must be a multiple of 1000", text)
		}
		return fmt.Appendf(nil, `{"offerThroughput":%d,"offerAutopilotSettings":%s}`, settings.MaxThroughput/10, text), nil
	}
	text := first(x.header, headerOfferThroughput)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 400 || n%100 != 0 {
		return nil, refuse(http.StatusBadRequest, "The throughput %q is invalid: it must be a multiple of 100, at least 400", text)
	}
	return fmt.Appendf(nil, `{"offerThroughput":%d}`, n), nil
}

// listOffers answers GET /offers.
func listOffers(x *exchange) (*reply, error) {
	return metadataFeed("Offers", "", offerBodies(x.srv.store)), nil
}

// queryOffers answers POST /offers with a query.
func queryOffers(x *exchange) (*reply, error) {
	bodies, err := x.filterMetadata(offerBodies(x.srv.store))
	if err != nil {
		return nil, err
	}
	return metadataFeed("Offers", "", bodies), nil
}

// readOffer answers GET /offers/{id}.
func readOffer(x *exchange) (*reply, error) {
	o, err := x.srv.store.Offer(x.route.id)
	if err != nil {
		return nil, err
	}
	return offerReply(o), nil
}

// replaceOffer answers PUT /offers/{id}: only the content can change.
func replaceOffer(x *exchange) (*reply, error) {
	o, err := x.srv.store.Offer(x.route.id)
	if err != nil {
		return nil, err
	}
	var in struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil || len(in.Content) == 0 {
		return nil, refuse(http.StatusBadRequest, "The request body is not an offer with a content")
	}
	if o, err = x.srv.store.PutOffer(o.RID, o.Resource, in.Content); err != nil {
		return nil, err
	}
	return offerReply(o), nil
}

func offerReply(o *store.Offer) *reply {
	a := ok(http.StatusOK, offerBody(o), metadataCharge)
	a.etag = o.ETag
	return a
}

func offerBodies(st *store.Store) (bodies [][]byte) {
	for _, o := range st.Offers() {
		bodies = append(bodies, offerBody(o))
	}
	return bodies
}

func offerBody(o *store.Offer) []byte {
	etag, _ := json.Marshal(o.ETag) // a string never fails
	return fmt.Appendf(nil, `{"id":%q,"_rid":%q,"_self":"offers/%s/","_etag":%s,"_ts":%d,"resource":%q,"offerResourceId":%q,`+
		`"offerVersion":"V2","offerType":"Invalid","content":%s}`, o.ID, o.ID, o.ID, etag, o.ModifiedAt().Unix(), o.Resource, o.RID, o.Content)
}
