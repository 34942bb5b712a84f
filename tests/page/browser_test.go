//go:build browser

package page

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// chromium returns the path of the browser, "" if none is installed.
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// tab is an open tab that records the errors of its console. Each tab has its own browser.
type tab struct {
	*testing.T
	ctx  context.Context //nolint:containedctx // it identifies the browser
	base string

	mu    sync.Mutex
	wrong []string // errors and warnings of the console
}

// patience bounds each wait for a condition.
const patience = time.Minute

func open(t *testing.T, base string) *tab {
	t.Helper()
	path := chromium()
	if path == "" {
		t.Skip("SKIPPED: Chromium is absent: install chromium, or the page is not tested in a browser")
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(time.Minute))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx, base: base}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.wrong = append(b.wrong, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				b.wrong = append(b.wrong, fmt.Sprint(e.Args))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				b.wrong = append(b.wrong, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	})
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, wrong := range b.wrong {
			t.Errorf("console: %s", wrong)
		}
	})
	// The context of the first run must live as long as the browser.
	if err := chromedp.Run(ctx, log.Enable()); err != nil {
		t.Fatal(err)
	}
	return b
}

// forgive drops console errors that the test provoked.
func (b *tab) forgive(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var kept []string
	for _, one := range b.wrong {
		if !strings.Contains(one, part) {
			kept = append(kept, one)
		}
	}
	b.wrong = kept
}

func (b *tab) do(actions ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// visit opens an address of the page. It retries because the navigation of an earlier click
// may still be in progress and abort it.
func (b *tab) visit(path string) {
	b.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		err = chromedp.Run(ctx, chromedp.Navigate(b.base+path))
		cancel()
		if err == nil || !strings.Contains(err.Error(), "net::ERR_ABORTED") {
			break
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

// sees waits until the page contains the text.
func (b *tab) sees(text string) {
	b.Helper()
	b.becomes(`document.body.innerText.includes(` + quoted(text) + `)`)
}

// becomes waits until an expression is true, also across navigations.
func (b *tab) becomes(expression string) {
	b.Helper()
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		var so bool
		last = chromedp.Run(ctx, chromedp.Evaluate(`!!(`+expression+`)`, &so))
		cancel()
		if last == nil && so {
			return
		}
	}
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
	defer cancel()
	var text, at string
	_ = chromedp.Run(ctx, chromedp.Location(&at), chromedp.Text("body", &text, chromedp.ByQuery))
	b.Fatalf("%s: not within %s (%v); the page %s has:\n%s", expression, patience, last, at, text)
}

// press clicks the first link or button with exactly this text.
func (b *tab) press(text string) {
	b.Helper()
	b.finds(`[...document.querySelectorAll("a, button")].find((e) => e.innerText.trim() === `+quoted(text)+`)`, `e.click()`)
}

// click clicks the first element of a selector.
func (b *tab) click(selector string) {
	b.Helper()
	b.finds(`document.querySelector(`+quoted(selector)+`)`, `e.click()`)
}

// fill types into a field by its id.
func (b *tab) fill(id, value string) {
	b.Helper()
	b.finds(`document.getElementById(`+quoted(id)+`)`, `e.value = `+quoted(value))
}

// finds waits until an expression returns a visible element, and runs a script on it as e.
// Both are one script, because a live view may replace the element between two.
func (b *tab) finds(expression, then string) {
	b.Helper()
	b.becomes(`(() => {
		const e = ` + expression + `;
		if (document.readyState !== "complete" || !e || !e.checkVisibility()) return false;
		` + then + `;
		return true;
	})()`)
}

// breakAnother breaks the nth event on the page Try it.
func (b *tab) breakAnother(n int) {
	b.Helper()
	b.press("Break an event")
	b.becomes(fmt.Sprintf(`document.readyState === "complete" && document.querySelectorAll("ul.plainlist li").length === %d`, n))
}

// confirm fills in name and reason, and presses the button.
func (b *tab) confirm(verb string) {
	b.Helper()
	b.fill("who", "Ann")
	b.fill("why", "a browser test")
	b.press(verb)
}

func (b *tab) path() string {
	b.Helper()
	var at string
	b.do(chromedp.Location(&at))
	u, err := url.Parse(at)
	if err != nil {
		b.Fatal(err)
	}
	return u.Path
}

// value runs a script until it succeeds, because the elements it reads may not be there yet.
func (b *tab) value(script string, into any) {
	b.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		err = chromedp.Run(ctx, chromedp.Evaluate(script, into))
		cancel()
		if err == nil {
			return
		}
	}
	b.Fatal(script, err)
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }
