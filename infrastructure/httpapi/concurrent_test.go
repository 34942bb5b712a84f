package httpapi_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"feedbox/infrastructure/httpapi"
)

// TestConcurrentClients runs 32 clients on the same few contacts, for the race detector. A
// request may fail only because of another client.
func TestConcurrentClients(t *testing.T) {
	a, _ := startEmulated(t, &httpapi.Options{Auth: twoWriters(t), RateLimit: -1})
	var paths []string
	for range 4 {
		created := a.do("POST", "/api/contacts", jane, "x-api-key", "key-a")
		paths = append(paths, created.header.Get("Location"))
	}
	const seed = 7
	t.Logf("seed %d", seed)
	var clients sync.WaitGroup
	for client := range 32 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			key := []string{"key-a", "key-b"}[client%2]
			for n := range 12 {
				path := paths[random.IntN(len(paths))]
				var got answer
				conditional := false
				switch random.IntN(8) {
				case 0:
					got = a.do("POST", "/api/contacts", jane, "x-api-key", key, "Idempotency-Key", fmt.Sprint("create ", n))
				case 1:
					got = a.do("POST", path+"/update-name", fmt.Sprintf(`{"firstName":"C%d","lastName":"N%d"}`, client, n), "x-api-key", key)
				case 2:
					got = a.do("PATCH", path, `{"company":{"city":"Bern"},"email":null}`, "Content-Type", "application/merge-patch+json", "x-api-key", key)
				case 3:
					got = a.do("POST", path+"/update-description", fmt.Sprintf(`{"description":"%d"}`, n), "x-api-key", key, "Idempotency-Key", fmt.Sprint(client, n))
				case 4:
					got = a.do("GET", path+"/audit", "", "x-api-key", key)
				case 5:
					got = a.do("GET", "/api/contacts?pageSize=2", "", "x-api-key", key)
				case 6:
					etag := a.do("GET", path, "", "x-api-key", key).header.Get("ETag")
					conditional = true
					got = a.do("POST", path+"/update-email", `{"email":"a@b.example"}`, "x-api-key", key, "If-Match", etag)
				default:
					got = a.do("GET", path, "", "x-api-key", key)
				}
				if got.status >= 400 && (got.status != 412 || !conditional) {
					t.Errorf("client %d, request %d: %d %s", client, n, got.status, got.body)
				}
			}
		})
	}
	clients.Wait()
	if strings.Contains(a.logs.String(), `"level":"ERROR"`) {
		t.Errorf("errors in the log:\n%s", a.logs)
	}
}
