package cosmos_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/store/cosmos"
)

// answering is a transport whose replies to all requests but that for the account have one
// status, or which fails.
type answering struct {
	status int
	err    error
}

func (a answering) Do(r *http.Request) (*http.Response, error) {
	status, body := a.status, `{"code":"x","message":"personal@example.com"}`
	if r.URL.Path == "" || r.URL.Path == "/" {
		status, body = http.StatusOK, `{"id":"a","writableLocations":[],"readableLocations":[]}`
	} else if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: status, Request: r, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{"Content-Type": {"application/json"}}}, nil
}

func TestAnswersNotesFailuresInOneLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		transport answering
		fails     bool
	}{
		"503":      {answering{status: http.StatusServiceUnavailable}, true},
		"500":      {answering{status: http.StatusInternalServerError}, true},
		"403":      {answering{status: http.StatusForbidden}, true},
		"404":      {answering{status: http.StatusNotFound}, false},
		"409":      {answering{status: http.StatusConflict}, false},
		"no reply": {answering{err: errors.New("connection\nrefused")}, true},
		"canceled": {answering{err: context.Canceled}, true},
	} {
		var noted []error
		client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: "https://" + strings.ReplaceAll(name, " ", "") + ".documents.azure.com", Key: "a2V5", Options: azcore.ClientOptions{
			Transport: c.transport, Retry: policy.RetryOptions{MaxRetries: -1},
			PerCallPolicies: []policy.Policy{cosmos.Answers(func(err error) { noted = append(noted, err) })},
		}})
		if err != nil {
			t.Fatal(err)
		}
		container, err := client.NewContainer("shop", "data")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("k"), "personal", nil)
		if len(noted) == 0 {
			t.Errorf("%s: nothing noted", name)
			continue
		}
		last := noted[len(noted)-1]
		if (last != nil) != c.fails {
			t.Errorf("%s: noted %v", name, last)
		}
		if last != nil && (strings.Contains(last.Error(), "personal") || strings.Contains(last.Error(), "\n") || len(last.Error()) > 200) {
			t.Errorf("%s: noted %q", name, last.Error())
		}
		if c.transport.err != nil && !errors.Is(last, c.transport.err) {
			t.Errorf("%s: %v does not wrap %v", name, last, c.transport.err)
		}
	}
}
