package cosmosemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// Sub-status codes, header x-ms-substatus.
const (
	subKeyMismatch        = 1001 // with 400
	subCrossPartition     = 1004 // with 400
	subWrongContainer     = 1024 // with 400
	subWriteForbidden     = 3    // with 403
	subAccountNotFound    = 1008 // with 403
	subSessionUnavailable = 1002 // with 404
	subOwnerNotFound      = 1003 // with 404: the database or the container of a request
	subCreating           = 1013 // with 404
	subRangeGone          = 1002 // with 410
	subThrottled          = 3200 // with 429
)

// notFound is the service's message of each 404.
const notFound = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"

// wireError is an error reply.
type wireError struct {
	Status    int
	SubStatus int
	Code      string // in the body, default by Status
	Message   string
	Extra     string // further members of the body, such as `"a":1`
	Headers   http.Header
}

func (e *wireError) Error() string { return fmt.Sprintf("%d/%d: %s", e.Status, e.SubStatus, e.Message) }

func refuse(status int, format string, args ...any) *wireError {
	return &wireError{Status: status, Message: fmt.Sprintf(format, args...)}
}

func (e *wireError) sub(code int) *wireError {
	e.SubStatus = code
	return e
}

// codes are the names of statuses in the service's error bodies.
var codes = map[int]string{
	http.StatusBadRequest:            "BadRequest",
	http.StatusUnauthorized:          "Unauthorized",
	http.StatusForbidden:             "Forbidden",
	http.StatusNotFound:              "NotFound",
	http.StatusMethodNotAllowed:      "MethodNotAllowed",
	http.StatusRequestTimeout:        "RequestTimeout",
	http.StatusConflict:              "Conflict",
	http.StatusGone:                  "Gone",
	http.StatusPreconditionFailed:    "PreconditionFailed",
	http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusTooManyRequests:       "TooManyRequests",
	449:                              "RetryWith",
	http.StatusInternalServerError:   "InternalServerError",
	http.StatusNotImplemented:        "NotImplemented",
	http.StatusServiceUnavailable:    "ServiceUnavailable",
}

func (e *wireError) code() string {
	if e.Code != "" {
		return e.Code
	}
	if c := codes[e.Status]; c != "" {
		return c
	}
	return http.StatusText(e.Status)
}

func (e *wireError) body() []byte {
	message, _ := json.Marshal(e.Message) // a string never fails
	out := fmt.Appendf(nil, `{"code":"%s","message":%s`, e.code(), message)
	if e.Extra != "" {
		out = append(append(out, ','), e.Extra...)
	}
	return append(out, '}')
}

// noItem is the 404 for a missing item.
func noItem(id string) *wireError {
	return refuse(http.StatusNotFound, "Entity with the specified id does not exist in the system: no item %q in this logical partition. "+notFound, id)
}

// asWire maps an error of the internal packages to a reply. An unknown error is a failure
// of the emulator itself: 500.
func asWire(err error) *wireError {
	var wire *wireError
	var syntax *document.SyntaxError
	var querySyntax *query.SyntaxError
	var unsupported *query.UnsupportedError
	var bind *query.BindError
	switch {
	case errors.As(err, &wire):
		return wire
	case errors.Is(err, store.ErrNotFound):
		return refuse(http.StatusNotFound, "Entity with the specified id does not exist in the system: %v. "+notFound, err)
	case errors.Is(err, store.ErrExists):
		return refuse(http.StatusConflict, "Entity with the specified id already exists in the system: %v", err)
	case errors.Is(err, store.ErrNotUnique):
		return refuse(http.StatusConflict, "%v", err)
	case errors.Is(err, store.ErrRangeGone):
		return refuse(http.StatusGone, "The requested partition key range is no longer available: %v", err).sub(subRangeGone)
	case errors.Is(err, store.ErrTooOld):
		return refuse(http.StatusBadRequest, "%v: start from now", err)
	case errors.As(err, &syntax), errors.Is(err, document.ErrNotObject), errors.Is(err, document.ErrNoID),
		errors.Is(err, document.ErrTTL), errors.Is(err, document.ErrKeyValue), errors.Is(err, epk.ErrHeader),
		errors.Is(err, store.ErrInvalid), errors.As(err, &bind):
		return refuse(http.StatusBadRequest, "%v", err)
	case errors.As(err, &querySyntax):
		if querySyntax.Code != "" {
			return refuse(http.StatusBadRequest, "%s: %s", querySyntax.Code, querySyntax.Msg)
		}
		return refuse(http.StatusBadRequest, "SC1001: Syntax error, incorrect syntax near position %d: %s", querySyntax.Pos, querySyntax.Msg)
	case errors.As(err, &unsupported):
		return refuse(http.StatusBadRequest, "%v", err)
	}
	return refuse(http.StatusInternalServerError, "The emulator failed: %v", err)
}
