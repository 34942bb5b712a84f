package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/binaryjson"
	"feedbox/infrastructure/emulator/cosmosemu/internal/hybridrow"
)

// The .NET SDK sends documents in binary JSON, and wants them back so, where
// AZURE_COSMOS_BINARY_ENCODING_ENABLED is set. The emulator stores and answers text
// otherwise; a client that takes both gets text.

// textOf is a request's body as text.
func textOf(body []byte) ([]byte, error) {
	if !binaryjson.Is(body) || hybridrow.Is(body) {
		return body, nil
	}
	text, err := binaryjson.Decode(body)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is invalid: %v", err)
	}
	return text, nil
}

// wantsBinary tells whether the client takes documents in binary only. A feed is text
// unless the older of the two headers asks: .NET's HeadersValidationTests.
func (x *request) wantsBinary() bool {
	if x.route.resource != "docs" || x.route.op == OpQueryPlan {
		return false
	}
	return first(x.header, headerBodyFormat) == "CosmosBinary" ||
		first(x.header, headerContentFormat) == "CosmosBinary" && x.route.op != OpListItems && x.route.op != OpReadChangeFeed
}

// makeBinary turns a document into binary. What is no JSON text stays as it is.
func (a *reply) makeBinary() {
	if len(a.body) == 0 || a.binary {
		return
	}
	if body, err := binaryjson.Encode(a.body); err == nil {
		a.body, a.binary = body, true
	}
}
