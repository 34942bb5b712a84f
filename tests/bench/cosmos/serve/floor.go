package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"

	"feedbox/tests/bench/cosmos/document"
)

// emulatorHeaders are the headers of a reply of the emulator to a read, besides those of every floor. A
// client of the service needs or may use them, so a server cannot save their cost.
var emulatorHeaders = http.Header{
	"x-ms-activity-id": {"2f0a6a0c-6f0e-4b0e-9d3c-3f4c1f0a6a0c"}, "x-ms-request-duration-ms": {"0.123"}, "x-ms-session-token": {"0:-1#1234"}, "lsn": {"1234"},
	"x-ms-documentdb-partitionkeyrangeid": {"0"}, "x-ms-content-path": {"AAAAAAAAAAA="}, "x-ms-alt-content-path": {"dbs/bench/colls/c"}, "x-ms-item-lsn": {"1234"},
	"x-ms-resource-quota": {"documentsCount=-1;"}, "x-ms-resource-usage": {"documentsCount=-1;"},
	"x-ms-gatewayversion": {"version=feedbox-emulator"}, "x-ms-serviceversion": {"version=feedbox-emulator"}, "x-ms-number-of-read-regions": {"0"},
	"x-ms-last-state-change-utc": {"Fri, 27 Nov 2026 08:00:00.000 GMT"}, "x-ms-cosmos-llsn": {"1234"}, "x-ms-quorum-acked-lsn": {"1234"},
	"x-ms-cosmos-quorum-acked-llsn": {"1234"}, "x-ms-global-committed-lsn": {"1234"},
}

// serveFloor serves the floor with net/http: the same replies, without storage and checks.
func serveFloor(secure, headers bool) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	scheme := "http"
	if secure {
		scheme = "https"
		certificate, err := floorCertificate()
		if err != nil {
			return "", err
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}})
	}
	endpoint := fmt.Sprintf("%s://%s/", scheme, listener.Addr())
	go func() { _ = (&http.Server{Handler: floor(endpoint, headers)}).Serve(listener) }() // ends with the process
	return endpoint, nil
}

func floor(endpoint string, headers bool) http.Handler {
	location := fmt.Sprintf(`[{"name":"floor","databaseAccountEndpoint":%q}]`, endpoint)
	account := fmt.Appendf(nil, `{"writableLocations":%s,"readableLocations":%s,"enableMultipleWriteLocations":false,"userConsistencyPolicy":{"defaultConsistencyLevel":"Session"}}`, location, location)
	item := document.Body("r0", "r0")
	results := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"statusCode":201,"requestCharge":4.95,"eTag":"\"5f1f9a3c-0000-0000-0000-000000000000\""},`, 5), ",") + "]")
	page := []byte(`{"_rid":"floor","Documents":[` + strings.TrimSuffix(strings.Repeat(string(item)+",", 100), ",") + `],"_count":100}`)
	ranges := []byte(`{"_rid":"floor","PartitionKeyRanges":[{"id":"0","minInclusive":"","maxExclusive":"FF","parents":[]}],"_count":1}`)
	container := []byte(`{"id":"c","_rid":"floor","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a broken request needs no reply
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Ms-Request-Charge", "1")
		h.Set("Etag", `"1"`)
		if headers {
			maps.Copy(h, emulatorHeaders)
		}
		switch {
		case r.URL.Path == "/":
			_, _ = w.Write(account)
		case strings.HasSuffix(r.URL.Path, "/pkranges") && r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
		case strings.HasSuffix(r.URL.Path, "/pkranges"):
			_, _ = w.Write(ranges)
		case strings.HasSuffix(r.URL.Path, "/colls/c"):
			_, _ = w.Write(container)
		case r.Header.Get("A-IM") != "":
			_, _ = w.Write(page)
		case r.Method == http.MethodGet:
			_, _ = w.Write(item)
		case r.Header.Get("X-Ms-Cosmos-Is-Batch-Request") != "":
			_, _ = w.Write(results)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
}
