package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/mediator"
	"feedbox/infrastructure/httpapi"
)

// A flood of requests without a credential does not flood the log. The next line has the number
// of lines left out. Accepted requests are all logged.
func TestRefusalsInTheLogAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		server, err := newServer(mediator.New(), &httpapi.Options{Auth: apiKeys(t), Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		send := func(path, key string) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("x-api-key", key)
			server.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}
		for range 1000 { // 401, and 429 after the burst
			send("/api/contacts", "nokey")
		}
		if lines := strings.Count(log.String(), `"msg":"request"`); lines != 10 {
			t.Errorf("%d lines about 1000 refusals in a second", lines)
		}
		for range 50 {
			send("/api/contacts/1", "rkey") // 404 of a known caller
		}
		if lines := strings.Count(log.String(), `"principal"`); lines != 50 {
			t.Errorf("%d lines about 50 requests with a credential", lines)
		}
		time.Sleep(time.Second)
		send("/nowhere", "")
		if !strings.Contains(log.String(), `"left_out":990`) {
			t.Errorf("the lines left out are not counted:\n%s", log.String())
		}
	})
}

// The ids of callers can be guessed, for example from a directory. A hash of them alone would reveal
// who is in a log.
func TestPseudonymsOfCallersDependOnTheTokenKey(t *testing.T) {
	key, other := bytes.Repeat([]byte("k"), 32), bytes.Repeat([]byte("o"), 32)
	logged := func(keys ...[]byte) string {
		var log bytes.Buffer
		server, err := newServer(mediator.New(), &httpapi.Options{Auth: apiKeys(t), TokenKeys: keys, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/api/contacts/1", nil)
		r.Header.Set("x-api-key", "rkey")
		server.Handler().ServeHTTP(httptest.NewRecorder(), r)
		_, after, _ := strings.Cut(log.String(), `"principal":"`)
		pseudonym, _, _ := strings.Cut(after, `"`)
		return pseudonym
	}
	// printf 'feedbox principal v1 apikey:reader' | openssl dgst -sha256 -hmac kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
	const known = "aaf747501e54"
	if one := logged(key, other); one != known || logged(key) != one {
		t.Errorf("pseudonym %q, want %q for each process with the same first key", one, known)
	}
	random := logged() // a process without a key
	if unsalted := sha256.Sum256([]byte("apikey:reader")); logged(other) == known || random == logged() || strings.HasPrefix(hex.EncodeToString(unsalted[:]), logged(key)) {
		t.Error("a pseudonym can be computed without the key")
	}
}

func TestRequestIDs(t *testing.T) {
	a := start(t, nil)
	first := a.do(http.MethodGet, "/api/contacts", "", "x-ms-client-request-id", "abc-123")
	second := a.do(http.MethodGet, "/api/contacts", "", "x-ms-client-request-id", "not ok")
	if first.header.Get("x-ms-request-id") == "" || first.header.Get("x-ms-request-id") == second.header.Get("x-ms-request-id") {
		t.Error("request ids are missing or repeat")
	}
	if first.header.Get("x-ms-client-request-id") != "abc-123" || second.header.Get("x-ms-client-request-id") != "" {
		t.Errorf("client request ids: %q, %q", first.header.Get("x-ms-client-request-id"), second.header.Get("x-ms-client-request-id"))
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	got := a.do(http.MethodGet, "/nowhere", "", "traceparent", parent)
	if p := problemOf(t, got); p.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("the caller's trace is lost: %s", got.body)
	}
}

func TestSecurityHeaders(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	for _, got := range []answer{a.do(http.MethodGet, path, ""), a.do(http.MethodGet, "/nowhere", ""), a.do(http.MethodPost, "/api/contacts", "{")} {
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%d: %s is %q", got.status, name, got.header.Get(name))
			}
		}
		if !strings.Contains(got.header.Get("Cache-Control"), "no-") {
			t.Errorf("%d: Cache-Control is %q", got.status, got.header.Get("Cache-Control"))
		}
	}
}

// TestLogsHoldNoPersonalData sends valid and invalid requests with marked values, and
// searches the log for them.
func TestLogsHoldNoPersonalData(t *testing.T) {
	a := start(t, nil)
	const mark = "Zyxw"
	body := strings.NewReplacer("Jane", mark, "Doe", mark, "jane@", mark+"@", "A contact", mark, "Contoso", mark).Replace(jane)
	path := a.do(http.MethodPost, "/api/contacts", body).header.Get("Location")
	a.do(http.MethodPost, "/api/contacts", body+mark)
	a.do(http.MethodPost, "/api/contacts", strings.Replace(body, `"email"`, `"`+mark+`"`, 1))
	a.do(http.MethodPost, "/api/contacts", strings.Replace(body, "@contoso.example", mark, 1))
	a.do(http.MethodPost, path+"/update-name", `{"firstName":"`+mark+`","lastName":"`+mark+`\u0000"}`)
	a.do(http.MethodGet, "/api/contacts/"+mark, "")
	a.do(http.MethodGet, "/api/contacts?name="+mark, "")
	a.do(http.MethodGet, path, "", "User-Agent", mark, "If-None-Match", mark, "x-ms-client-request-id", mark, "Authorization", "Bearer "+mark)
	a.do(mark, path, "")
	a.memory.contacts = nil
	a.do(http.MethodPost, "/api/contacts", body) // panics
	log := a.logs.String()
	if strings.Contains(log, mark) || strings.Contains(strings.ToLower(log), strings.ToLower(mark)) {
		t.Errorf("personal data in the log:\n%s", log)
	}
	var lines []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"msg":"request"`) {
			lines = append(lines, line)
		}
	}
	if len(lines) != 10 {
		t.Errorf("%d lines for 10 requests", len(lines))
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	if line["route"] != "/api/contacts" || line["status"] != 201.0 || "/api/contacts/"+line["contact_id"].(string) != path {
		t.Errorf("incomplete access line: %s", lines[0])
	}
}
