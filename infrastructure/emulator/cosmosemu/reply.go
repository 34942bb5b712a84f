package cosmosemu

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/cosmosemu/internal/binaryjson"
)

// reply is a successful answer.
type reply struct {
	status       int
	body         []byte
	charge       float64 // request units
	etag         string
	session      string // session token
	continuation string
	count        int           // of items in a feed, -1 for none
	binary       bool          // the body is not JSON
	usage        bool          // with the headers for the usage of the container
	itemLSN      string        // of the last write of the item
	location     string        // of the item
	extra        []headerValue // further headers
}

type headerValue struct{ name, value string }

func ok(status int, body []byte, charge float64) *reply {
	return &reply{status: status, body: body, charge: charge, count: -1}
}

var (
	contentTypeJSON   = []string{"application/json"}
	contentTypeBinary = []string{"application/octet-stream"}
)

// makeBinary encodes a document as binary JSON. A body that is not JSON text stays
// unchanged.
func (a *reply) makeBinary() {
	if len(a.body) == 0 || a.binary {
		return
	}
	if body, err := binaryjson.Encode(a.body); err == nil {
		a.body, a.binary = body, true
	}
}

// Values that never change. Replies share them, so they must not be written to.
var (
	programVersion = []string{"version=feedbox-emulator"}
	// uncounted is -1 because the emulator does not count the usage of a container and has no limit.
	uncounted = []string{"documentsCount=-1;"}
)

// setCommon sets the headers that every reply of the service has. Where the reply has an LSN, so
// do those of its replicas: here they are one.
func (x *request) setCommon(h http.Header) {
	h[replyGatewayVersion], h[replyServiceVersion] = programVersion, programVersion
	h[replyReadRegions], h[replyStateChange] = x.account.readRegions, x.account.started
	if lsn := h[replyLSN]; lsn != nil { //nolint:staticcheck // the service writes this name in lower case
		h[replyLocalLSN], h[replyAckedLSN], h[replyAckedLocalLSN], h[replyCommittedLSN] = lsn, lsn, lsn, lsn
	}
}

// write sends the reply to a request. The header values share one array, to save allocations.
func (a *reply) write(w http.ResponseWriter, x *request) {
	h := w.Header()
	values := x.values[:0]
	set := func(name, value string) {
		if value != "" {
			values = append(values, value)
			h[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	set(replyActivityID, activityID(x.header))
	set(replyRequestCharge, formatCharge(a.charge))
	set(replyDuration, x.duration())
	set(replySessionToken, a.session)
	set(replyLSN, tokenLSN(a.session))
	set(replyRangeID, tokenRange(a.session))
	set(replyETag, a.etag)
	set(replyContinuation, a.continuation)
	set(replyItemLSN, a.itemLSN)
	set(replyLocation, a.location)
	set(replyContentPath, x.route.contentPath)
	set(replyAltContentPath, x.route.altContentPath)
	if a.count >= 0 {
		set(replyItemCount, strconv.Itoa(a.count))
	}
	for _, v := range a.extra {
		set(v.name, v.value)
	}
	if a.usage {
		h[replyQuota], h[replyUsage] = uncounted, uncounted
	}
	x.setCommon(h)
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h[headerContentType] = contentTypeJSON
		if a.binary {
			h[headerContentType] = contentTypeBinary
		}
		set(headerContentLength, strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // fails only if the client has disconnected
}

// writeError sends an error as the reply.
func (x *request) writeError(w http.ResponseWriter, e *wireError) {
	body := e.body()
	h := w.Header()
	for name, values := range e.Headers {
		h[name] = values
	}
	h[headerContentType] = contentTypeJSON
	h[replyActivityID] = []string{activityID(x.header)}
	h[replyRequestCharge] = []string{formatCharge(errorCharge)}
	h[replyDuration] = []string{x.duration()}
	if e.SubStatus != 0 {
		h[replySubstatus] = []string{strconv.Itoa(e.SubStatus)}
	}
	if x.at != nil && e.Status != http.StatusBadRequest && e.SubStatus == 0 { // the state that the request saw
		token := rangeToken(x.at, x.at.LSN())
		h[replySessionToken], h[replyLSN], h[replyRangeID] = []string{token}, []string{tokenLSN(token)}, []string{x.at.ID}
	}
	x.setCommon(h)
	h[headerContentLength] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // fails only if the client has disconnected
}

// activityID returns the client's activity id, or a new one.
func activityID(h http.Header) string {
	if id := first(h, headerActivityID); id != "" {
		return id
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}
