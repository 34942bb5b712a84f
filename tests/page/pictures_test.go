//go:build browser

package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The pictures of README: FEEDBOX_TEST_PICTURES names the folder they are written to. Each
// is of a feedbox-dev that has been given something to do.
func TestPictures(t *testing.T) {
	dir := os.Getenv("FEEDBOX_TEST_PICTURES")
	if dir == "" {
		t.Skip("SKIPPED: FEEDBOX_TEST_PICTURES names no folder: pictures are made on demand")
	}
	_, e := dev(t)
	b := open(t, e.Page)
	b.do(chromedp.EmulateViewport(1100, 760))
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
	for range 25 {
		b.visit("/try")
		b.press("Create it, and see its life")
		b.sees("from creation to reception")
	}
	scheme("dark")
	picture("life")
	scheme("light")
	b.visit("/parked")
	b.sees("waits for you")
	b.do(chromedp.Click(`a[href^="/parked/keys/"]`, chromedp.ByQuery))
	b.sees("What order is kept")
	if !strings.HasPrefix(b.path(), "/parked/keys/") {
		t.Fatal(b.path())
	}
	picture("parked")
	b.visit("/")
	b.sees("Accepted")
	picture("now")
}
