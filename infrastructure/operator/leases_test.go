package operator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/config"
)

func TestSilence(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for written, want := range map[time.Duration]time.Duration{time.Second: 0, 8 * time.Second: 0, 9 * time.Second: 9 * time.Second, time.Minute: time.Minute, -time.Hour: 0} {
		l := changefeed.Lease{Owner: "a", Expiry: 20 * time.Second, Timestamp: now.Add(-written)}
		if got := silence(l, 5*time.Second, now); got != want {
			t.Errorf("written %s ago: silent %s, want %s", written, got, want)
		}
		l.Owner = ""
		if got := silence(l, 5*time.Second, now); got != 0 {
			t.Errorf("nobody is silent for %s", got)
		}
	}
}

// The doctor judges what is unsent by its age: against what a takeover takes, the time in
// which the topic drops what comes again, and the lifetime of events.
func TestDoctorJudgesByAge(t *testing.T) {
	assumed := duplicateWindow{length: defaultDuplicateWindow, assumed: true}
	hour := duplicateWindow{length: time.Hour}
	for _, c := range []struct {
		age    time.Duration
		window duplicateWindow
		status FindingStatus
		next   string
	}{
		{30 * time.Second, assumed, FindingOK, ""},
		{3 * time.Minute, assumed, FindingWarning, "feedbox lag --watch shows for what"},
		{14 * time.Minute, assumed, FindingWarning, "older than a duplicate window of 10m0s (assumed"},
		{14 * time.Minute, hour, FindingWarning, "feedbox lag --watch shows for what"},
		{61 * time.Minute, hour, FindingWarning, "older than the topic's duplicate window of 1h0m0s"},
		{30 * time.Second, duplicateWindow{}, FindingOK, ""},
		{3 * time.Minute, duplicateWindow{}, FindingWarning, "older than the topic's duplicate window of 0s"},
		{70 * time.Hour, hour, FindingWarning, "does not keep up"},
		{200 * time.Hour, hour, FindingFailed, "events will be lost"},
	} {
		if got := judgeAge(Finding{Status: FindingOK}, c.age, 240*time.Hour, c.window); got.Status != c.status || !strings.Contains(got.Next, c.next) {
			t.Errorf("%s, %s: %+v, want %+v", c.age, c.window, got, c)
		}
	}
}

// The window is the topic's own where the management API tells it.
func TestTheDuplicateWindowIsTheTopics(t *testing.T) {
	var settings string
	management := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if settings == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `<entry xmlns="http://www.w3.org/2005/Atom"><title>contacts</title><content type="application/xml">`+
			`<TopicDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">%s</TopicDescription></content></entry>`, settings)
	}))
	defer management.Close()
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/",
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=Endpoint=sb://events.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=a2V5",
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &Operator{cfg: cfg}
	for text, want := range map[string]duplicateWindow{
		"": {length: 10 * time.Minute, assumed: true},
		"<RequiresDuplicateDetection>true</RequiresDuplicateDetection><DuplicateDetectionHistoryTimeWindow>PT1H</DuplicateDetectionHistoryTimeWindow>": {length: time.Hour},
		"<RequiresDuplicateDetection>false</RequiresDuplicateDetection>":                                                                               {},
	} {
		settings = text
		if got := o.duplicateWindow(t.Context(), management.URL); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
