//go:build browser

package page

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestPictures takes the pictures of README from feedbox-dev. The variable
// FEEDBOX_TEST_PICTURES names the folder to write to.
func TestPictures(t *testing.T) {
	dir := os.Getenv("FEEDBOX_TEST_PICTURES")
	if dir == "" {
		t.Skip("SKIPPED: FEEDBOX_TEST_PICTURES names no folder: pictures are made on demand")
	}
	play(t, dir)
	_, e := dev(t)
	b := open(t, e.Page)
	b.visit("/try")
	b.breakAnother(1)
	b.visit("/parked")
	b.sees("needs an operator")
	b.click(`a[href^="/parked/keys/"]`)
	b.sees("Order of the key")
	b.picture(dir, "parked", "light", 600)
}

// play takes the pictures of the playground while a killed relay is replaced, and of "Now".
func play(t *testing.T, dir string) {
	t.Helper()
	_, e := dev(t, "--play")
	b := open(t, e.Page)
	b.visit("/play")
	time.Sleep(time.Minute) // long enough for a curve
	b.press("Kill a relay")
	b.sees("Kill a relay is over")
	b.press("Fill the topic")
	b.sees("Fill the topic is over")
	time.Sleep(30 * time.Second)
	b.picture(dir, "play", "dark", 930)
	b.visit("/")
	b.sees("Everything flows")
	b.picture(dir, "now", "light", 600)
}

// picture writes a picture of the window.
func (b *tab) picture(dir, name, scheme string, height int64) {
	b.Helper()
	var png []byte
	b.do(chromedp.EmulateViewport(1300, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
	b.becomes(`document.getElementById("live-state").innerText === "live"`)
	b.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.Fatal(err)
	}
}
