package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"feedbox/tests/bench/cosmos/document"
)

// serveFloor serves the floor with net/http: the same replies, without storage and checks.
func serveFloor(secure bool) (string, error) {
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
	go func() { _ = (&http.Server{Handler: floor(endpoint)}).Serve(listener) }() // ends with the process
	return endpoint, nil
}

func floor(endpoint string) http.Handler {
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
