package cosmosemu

import (
	"errors"
	"io"
	"net/http"
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
