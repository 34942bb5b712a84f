package cosmosemu

import (
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/binaryjson"
	"feedbox/infrastructure/emulator/cosmosemu/internal/hybridrow"
)

// The .NET SDK sends documents as binary JSON, and expects them back in that form, if
// AZURE_COSMOS_BINARY_ENCODING_ENABLED is set. The emulator stores text. A client that
// accepts both forms gets text.

// textOf converts the body of a request to text.
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

// wantsBinary reports whether the client accepts documents in binary only. A feed is text
// unless the older of the two headers asks for binary: .NET's HeadersValidationTests.
func wantsBinary(rt *route, h http.Header) bool {
	if rt.resource != "docs" || rt.op == OpQueryPlan {
		return false
	}
	return first(h, headerBodyFormat) == "CosmosBinary" ||
		first(h, headerContentFormat) == "CosmosBinary" && rt.op != OpListItems && rt.op != OpReadChangeFeed
}

// wantsBody reports whether a write must return the document.
func wantsBody(h http.Header) bool {
	return !strings.EqualFold(first(h, headerPrefer), "return=minimal")
}
