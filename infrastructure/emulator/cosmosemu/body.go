package cosmosemu

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/binaryjson"
	"feedbox/infrastructure/emulator/cosmosemu/internal/hybridrow"
)

// maxBody limits the body of a request. It is the service's limit of 2 MB for an item
// and for a batch.
const maxBody = 2 << 20

func readBody(dst []byte, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return dst, refuse(http.StatusRequestEntityTooLarge, "Request size is too large: %d bytes, at most %d", r.ContentLength, maxBody)
	}
	if n := int(r.ContentLength); n > 0 {
		if cap(dst) < n {
			dst = make([]byte, 0, n)
		}
		if _, err := io.ReadFull(r.Body, dst[:n]); err != nil {
			return dst, refuse(http.StatusBadRequest, "The request body ended early: %v", err)
		}
		return dst[:n], nil
	}
	if r.ContentLength == 0 {
		return dst, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return dst, refuse(http.StatusRequestEntityTooLarge, "Request size is too large: at most %d bytes", maxBody)
	}
	if err != nil {
		return dst, refuse(http.StatusBadRequest, "The request body ended early: %v", err)
	}
	return append(dst, body...), nil
}

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
