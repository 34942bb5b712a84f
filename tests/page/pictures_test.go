//go:build browser

package page

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"feedbox/tests/testkit"
)

// TestPictures takes the pictures of README from a feedbox-dev under load. The variable
// FEEDBOX_TEST_PICTURES names the folder to write to.
func TestPictures(t *testing.T) {
	dir := os.Getenv("FEEDBOX_TEST_PICTURES")
	if dir == "" {
		t.Skip("SKIPPED: FEEDBOX_TEST_PICTURES names no folder: pictures are made on demand")
	}
	_, e := dev(t)
	b := open(t, e.Page)
	b.do(chromedp.EmulateViewport(1100, 700))
	scheme := func(name string) {
		b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
	}
	picture := func(name string) {
		var png []byte
		b.becomes(`document.getElementById("live-state").innerText === "live"`)
		b.do(chromedp.CaptureScreenshot(&png))
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.visit("/try")
	for n := range 2 {
		b.breakAnother(n + 1)
	}
	load := testkit.Start(t, "load", testkit.Build(t).Dev, nil, "load", "--ready-file", e.ready, "--rate", "80", "--changes", "2000", "--history", filepath.Join(t.TempDir(), "history"))
	defer load.Kill()
	b.press("Create it, and see its life")
	b.sees("from creation to reception")
	for _, change := range []string{`{"email":"john@contoso.com"}`, `{"name":{"firstName":"Jane"}}`} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, e.API+"/api/contacts/"+strings.TrimPrefix(b.path(), "/life/"), strings.NewReader(change))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/merge-patch+json")
		reply, err := http.DefaultClient.Do(r)
		if err != nil || reply.Body.Close() != nil {
			t.Fatal(err)
		}
	}
	b.sees("ContactEmailUpdatedEvent")
	scheme("dark")
	picture("life")
	scheme("light")
	b.visit("/parked")
	b.sees("needs an operator")
	b.click(`a[href^="/parked/keys/"]`)
	b.sees("Order of the key")
	if !strings.HasPrefix(b.path(), "/parked/keys/") {
		t.Fatal(b.path())
	}
	picture("parked")
	b.visit("/")
	time.Sleep(20 * time.Second) // long enough for a curve
	picture("now")
}
