package cosmosemu

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/binaryjson"
	"feedbox/infrastructure/emulator/cosmosemu/internal/hybridrow"
)

// maxBody limits the body of a request. It is the service's limit of 2 MB for an item
// and for a batch.
const maxBody = 2 << 20

// The limits of a request. The service's own are not documented.
const (
	maxHead     = 64 << 10 // continuation tokens may have 16 KB
	headTimeout = 10 * time.Second
	// bodyTimeout bounds the arrival of a body larger than smallBody, or of unknown length.
	// Smaller ones have no deadline, because they hold little memory.
	bodyTimeout = 30 * time.Second
	smallBody   = 16 << 10
	// maxDiscard bounds the rest of a refused body that is read and discarded, because a client
	// that sends everything first would see a reset instead of the answer.
	maxDiscard     = 16 << 20
	discardTimeout = 10 * time.Second
)

// readBody appends the body of a request to dst.
func readBody(dst []byte, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n > maxBody {
		return dst, refuse(http.StatusRequestEntityTooLarge, "Request size is too large: %d bytes, at most %d", n, maxBody)
	} else if n >= 0 && n <= smallBody {
		return readKnown(dst, r)
	}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer supports it
	body, err := readKnown(dst, r)
	if err == nil {
		_ = connection.SetReadDeadline(time.Time{}) // otherwise the deadline would end a call that a fault delays
	}
	return body, err
}

func readKnown(dst []byte, r *http.Request) ([]byte, error) {
	if n := int(r.ContentLength); n >= 0 {
		if cap(dst) < n {
			dst = make([]byte, 0, n)
		}
		_, err := io.ReadFull(r.Body, dst[:n])
		return dst[:n], endedEarly(r, err)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if len(body) > maxBody {
		return dst, refuse(http.StatusRequestEntityTooLarge, "Request size is too large: at most %d bytes", maxBody)
	}
	return append(dst, body...), endedEarly(r, err)
}

// endedEarly returns the refusal of a body that could not be read. Its rest must not be awaited.
func endedEarly(r *http.Request, err error) error {
	if err == nil {
		return nil
	}
	r.Body = http.NoBody
	return refuse(http.StatusBadRequest, "The request body ended early: %v", err)
}

// discardBody reads the rest of the body of a refused request. It reads nothing if the rest is too
// long, or if the client waits for the answer before it sends the body.
func discardBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == http.NoBody || r.ContentLength > maxDiscard || r.Header.Get("Expect") != "" {
		return
	}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(discardTimeout))
	if _, err := io.CopyN(io.Discard, r.Body, maxDiscard); errors.Is(err, io.EOF) {
		_ = connection.SetReadDeadline(time.Time{})
	}
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
