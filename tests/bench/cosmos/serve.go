package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// serve is a child process: it prints its endpoint and key, answers "cpu" with its
// CPU time, and ends with its input.
func serve(name string, secure bool, dir, profile string) error {
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer file.Close()
		defer pprof.StopCPUProfile()
	}
	// The emulator's certificate serves for both.
	emulator, err := cosmosemu.Start(&cosmosemu.Options{TLS: secure, DataDir: dir})
	if err != nil {
		return err
	}
	defer emulator.Close()
	if err := emulator.CreateContainer("bench", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}, DefaultTTL: -1}); err != nil {
		return err
	}
	endpoint := emulator.Endpoint()
	if name == "floor" {
		if endpoint, err = serveFloor(secure); err != nil {
			return err
		}
	}
	fmt.Println(endpoint, emulator.Key())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		fmt.Println(time.Duration(usage.Utime.Nano() + usage.Stime.Nano()))
	}
	return nil
}

// serveFloor is the floor: net/http, the same replies, nothing stored or checked.
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
	item := body("r0", "r0")
	results := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"statusCode":201,"requestCharge":6.24,"eTag":"\"5f1f9a3c-0000-0000-0000-000000000000\""},`, 5), ",") + "]")
	page := []byte(`{"_rid":"floor","Documents":[` + strings.TrimSuffix(strings.Repeat(string(item)+",", 100), ",") + `],"_count":100}`)
	ranges := []byte(`{"_rid":"floor","PartitionKeyRanges":[{"id":"0","minInclusive":"","maxExclusive":"FF","parents":[]}],"_count":1}`)
	container := []byte(`{"id":"c","_rid":"floor","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a broken request has no reply to give
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
