package cosmos

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/store/cosmos/internal/store"
)

// script is a transport that answers requests in order and records them with their bodies. It also
// answers requests for the account. It serves the goroutine of the test; a request that is not in
// the script ends the test.
type script struct {
	t        *testing.T
	mu       sync.Mutex // guards the fields below
	answers  []answer
	requests []*http.Request
	bodies   []string
}

type answer func(*http.Request) (*http.Response, error)

// Do implements policy.Transporter.
func (s *script) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "" || r.URL.Path == "/" {
		location := `[{"name":"here","databaseAccountEndpoint":"http://` + r.Host + `/"}]`
		return respond(http.StatusOK, `{"writableLocations":`+location+`,"readableLocations":`+location+`}`)(r)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	if len(s.answers) == 0 {
		s.t.Fatalf("request %d is not in the script: %s %s %s", len(s.bodies), r.Method, r.URL.Path, body)
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next(r)
}

// container returns a container client that plays the answers.
func play(t *testing.T, answers ...answer) (*azcosmos.ContainerClient, *script) {
	t.Helper()
	s := &script{t: t, answers: answers}
	client, err := NewClient(ClientConfig{
		Endpoint: "http://" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + ".example/",
		Key:      base64.StdEncoding.EncodeToString([]byte("key")),
		Options:  azcore.ClientOptions{Transport: s},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	container, err := client.NewContainer("contacts", "data")
	if err != nil {
		t.Fatal(err)
	}
	return container, s
}

func respond(status int, body string, headers ...string) answer {
	return func(r *http.Request) (*http.Response, error) {
		reply := &http.Response{
			StatusCode: status, Status: fmt.Sprint(status), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
		}
		for i := 0; i+1 < len(headers); i += 2 {
			reply.Header.Set(headers[i], headers[i+1])
		}
		return reply, nil
	}
}

// status refuses the whole request.
func status(code int, headers ...string) answer {
	return respond(code, `{"code":"x","message":"x"}`, headers...)
}

// broken fails without a reply.
func broken(err error) answer {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// silent never answers; the client must time out.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// stored accepts a batch of n operations; the ETags are "e0", "e1" and so on.
func stored(n int) answer {
	var results []string
	for i := range n {
		results = append(results, fmt.Sprintf(`{"statusCode":201,"requestCharge":1,"eTag":"\"e%d\""}`, i))
	}
	return respond(http.StatusOK, "["+strings.Join(results, ",")+"]", store.HeaderSession, "0:-1#7")
}

// refused answers a batch with these statuses per operation.
func refused(codes ...int) answer {
	var results []string
	for _, code := range codes {
		results = append(results, fmt.Sprintf(`{"statusCode":%d,"requestCharge":1}`, code))
	}
	return respond(http.StatusMultiStatus, "["+strings.Join(results, ",")+"]", store.HeaderSession, "0:-1#9")
}

// found answers a batch of one read.
func found(o DataObject, etag azcore.ETag) answer {
	raw, err := o.encode()
	if err != nil {
		return broken(err)
	}
	return respond(http.StatusOK, fmt.Sprintf(`[{"statusCode":200,"requestCharge":1,"eTag":%q,"resourceBody":%s}]`, etag, raw))
}

// missing answers a batch of one read of a missing document.
func missing() answer { return refused(http.StatusNotFound) }

// A throttled read is retried three times with short waits, and carries a user agent.
func TestDefaultsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttled := status(http.StatusTooManyRequests)
		container, s := play(t, throttled, throttled, throttled, throttled)
		began := time.Now()
		if _, err := container.ReadItem(t.Context(), keyValue("k"), "a", nil); err == nil {
			t.Error("read")
		}
		if took := time.Since(began); len(s.requests) != 4 || took < 300*time.Millisecond || took > 3*time.Second {
			t.Errorf("%d requests in %s; want 4 in a second or so", len(s.requests), took)
		}
		if got := s.requests[0].Header.Get("User-Agent"); !strings.HasPrefix(got, "feedbox ") {
			t.Errorf("User-Agent %q", got)
		}
	})
}
