package cosmosemu_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// answer is a reply read into memory.
type answer struct {
	StatusCode int
	Header     http.Header
	Body       string
}

// send sends a signed request without azcosmos, for requests that azcosmos never sends.
func send(t *testing.T, srv *cosmosemu.Server, method, path, body string, headers map[string]string) answer {
	t.Helper()
	return sendTo(t, srv, srv.Endpoint(), method, path, body, headers)
}

// statusOf returns the status and the sub-status of an answer.
func statusOf(r answer) string {
	return strconv.Itoa(r.StatusCode) + " " + r.Header.Get("x-ms-substatus")
}

// sendTo sends a signed request to one of the server's endpoints.
func sendTo(t *testing.T, srv *cosmosemu.Server, endpoint, method, path, body string, headers map[string]string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	segments := strings.Split(path, "/")
	kind, link := segments[len(segments)-1], strings.Join(segments[:len(segments)-1], "/")
	if len(segments)%2 == 0 && path != "" {
		kind, link = segments[len(segments)-2], path
	}
	date := strings.ToLower(time.Now().UTC().Format(http.TimeFormat))
	secret, err := base64.StdEncoding.DecodeString(srv.Key())
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.ToLower(method) + "\n" + kind + "\n" + link + "\n" + date + "\n\n"))
	req.Header.Set("x-ms-date", date)
	req.Header.Set("authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := srv.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}
