//go:build browser

package page

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// figure reads a number of the page by the id of its element.
func (b *tab) figure(id string) int {
	b.Helper()
	var text string
	b.value(`document.getElementById(`+quoted(id)+`).innerText`, &text)
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		b.Fatalf("#%s shows %q", id, text)
	}
	return n
}

// grows waits until a number of the page is above n.
func (b *tab) grows(id string, n int) {
	b.Helper()
	b.becomes(fmt.Sprintf(`Number(document.getElementById(%q).innerText.replaceAll(",", "")) > %d`, id, n))
}

// narrow returns by how many pixels the page is wider than a window of 400.
func (b *tab) narrow() int {
	b.Helper()
	over := 1
	b.do(chromedp.EmulateViewport(400, 800))
	for began := time.Now(); over > 0 && time.Since(began) < time.Minute; { // the page is laid out again meanwhile
		b.do(chromedp.Evaluate(`document.documentElement.scrollWidth - 400`, &over))
	}
	b.do(chromedp.EmulateViewport(1200, 900))
	return over
}

// The verdict stays green while a relay is killed with a button, and the clock is moved with
// the keyboard.
func TestPlaygroundVerdictStaysGreenUnderFaults(t *testing.T) {
	_, e := dev(t, "--play", "--relays", "2", "--rate", "30")
	b := open(t, e.Page)
	b.visit("/")
	b.press("Playground")
	b.sees("The promise holds")
	b.grows("arrived", 50)
	acked, arrived := b.figure("acknowledged"), b.figure("arrived")

	b.press("Kill a relay")
	b.sees("End it now")
	b.sees("Kill a relay: relay-")
	b.grows("acknowledged", acked+50)
	b.sees("Kill a relay is over")
	b.grows("arrived", arrived+150)
	b.sees("What each fault did")
	b.sees("contacts with") // judged for good

	b.do(chromedp.Focus("#fault-clock button", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	b.sees("Move the clock: the clocks of both services jumped ahead")
	b.press("Move the clock")
	b.sees("Not now")
	b.sees("the clock was moved a moment ago")
	b.forgive("409")

	b.visit("/")
	b.press("Playground")
	b.sees("The promise holds")
	for _, id := range []string{"lost", "doubled", "disordered"} {
		if n := b.figure(id); n != 0 {
			t.Errorf("%s: %d", id, n)
		}
	}
	if over := b.narrow(); over > 0 {
		t.Errorf("at 400 pixels the page is %d too wide", over)
	}
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	b.sees("The promise holds")
}
