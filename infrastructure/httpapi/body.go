package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/internal/strictjson"
)

// maxDepth is well above the depth of any body.
const maxDepth = 16

// readJSON reads the body of r as one JSON document of the given media type. Once the body
// has arrived, the request counts against the capacity.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, mediaType string) (*strictjson.Document, error) {
	if err := checkContentType(r, mediaType); err != nil {
		return nil, err
	}
	body, err := readBody(w, r, s.options.MaxBody)
	if err != nil {
		return nil, err
	}
	if err := s.enter(r); err != nil {
		return nil, err
	}
	document, err := strictjson.Parse(body, maxDepth)
	var beyond *strictjson.LimitError
	switch {
	case errors.As(err, &beyond):
		return nil, fault.Fields(fault.Field{Pointer: beyond.Pointer, Message: beyond.Error()})
	case err != nil:
		return nil, badRequest("malformed_json", "the body is not JSON: "+err.Error())
	}
	return document, nil
}

// checkContentType refuses other media types, charsets other than UTF-8, and content
// codings with 415.
func checkContentType(r *http.Request, want string) error {
	refuse := func(detail string) error {
		header := http.Header{"Accept-Encoding": {"identity"}}
		if r.Method == http.MethodPatch {
			header["Accept-Patch"] = []string{want}
		} else {
			header["Accept-Post"] = []string{want}
		}
		return &requestError{status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", detail: detail, header: header}
	}
	for _, coding := range r.Header["Content-Encoding"] { // a second line may name another one
		if coding == "" || strings.EqualFold(coding, "identity") {
			continue
		}
		return refuse("content codings are not supported: send the body uncompressed")
	}
	sent := r.Header.Get("Content-Type")
	if sent == want {
		return nil // the fast path for nearly every client
	}
	mediaType, parameters, err := mime.ParseMediaType(sent)
	if err != nil || mediaType != want {
		return refuse("the body must have the Content-Type " + want)
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refuse("the charset must be utf-8")
	}
	return nil
}

// usualBody bounds the memory that is allocated by Content-Length, before the body arrives.
const usualBody = 4 << 10

// readBody reads at most limit bytes; more is 413. The buffer of a longer body grows as it
// arrives, so that a caller cannot allocate memory by announcing a large body.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	var body []byte
	var err error
	if r.ContentLength >= 0 && r.ContentLength <= usualBody {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	if err == nil {
		return body, nil
	}
	var exceeded *http.MaxBytesError
	if errors.As(err, &exceeded) {
		return nil, bodyTooLarge(limit)
	}
	return nil, &requestError{status: http.StatusBadRequest, code: "body_unreadable", detail: "the body could not be read to its end", cause: err}
}

func bodyTooLarge(limit int64) error {
	return &requestError{
		status: http.StatusRequestEntityTooLarge, code: "body_too_large",
		detail: fmt.Sprintf("the body must have at most %d bytes", limit),
		header: http.Header{"Connection": {"close"}}, // otherwise net/http reads the rest of the body
	}
}
