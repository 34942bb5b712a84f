package cosmos_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/store/cosmos"
)

// forgotten does not answer the first request of an item, like a connection that a firewall has
// dropped.
type forgotten struct{ reads int }

func (f *forgotten) Do(r *http.Request) (*http.Response, error) {
	body := `{"writableLocations":[{"name":"here","databaseAccountEndpoint":"http://here/"}],"readableLocations":[]}`
	if strings.Contains(r.URL.Path, "/docs/") {
		if f.reads++; f.reads == 1 {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		body = `{"id":"a"}`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestUnansweredRequestTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &forgotten{}
		client, err := cosmos.NewClient(cosmos.ClientConfig{
			Endpoint: "http://here/", Key: "a2V5",
			Options: azcore.ClientOptions{Transport: wire},
		})
		if err != nil {
			t.Fatal(err)
		}
		container, err := client.NewContainer("feedbox", "data")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", nil)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("%v after %v, want the end of the deadline after 10 s", err, took)
		}
		if _, err := container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", nil); err != nil {
			t.Errorf("the next request: %v", err)
		}
	})
}
