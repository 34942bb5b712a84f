package cosmos_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/cosmos"
)

// forgotten answers nothing to its first request of an item, as a connection does that
// a firewall has dropped without a word.
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

func TestAReadThatIsNotAnsweredIsTriedAgain(t *testing.T) {
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
		if _, err := container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); wire.reads != 2 || took < 10*time.Second || took > 12*time.Second {
			t.Errorf("%d requests in %v, want a second one after 10 s", wire.reads, took)
		}
	})
}
