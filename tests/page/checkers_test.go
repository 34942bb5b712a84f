//go:build browser

package page

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The checkers are installed once, in the user's cache.
const (
	axeCore      = "axe-core@4.14.1"
	htmlValidate = "html-validate@10.17.0"
)

// tools installs the checkers and returns the folder of their modules.
func tools(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("SKIPPED: no folder for the checkers: %v", err)
	}
	dir := filepath.Join(cache, "feedbox-page-checkers")
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("SKIPPED: npm is absent: install Node.js, or nothing checks the page's HTML and its accessibility")
	}
	out, err := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, axeCore, htmlValidate).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: the checkers cannot be installed: %v: %s", err, out)
	}
	return filepath.Join(dir, "node_modules")
}

// All pages are valid HTML and accessible, in light and dark, wide and narrow.
func TestPagesAreValidAndAccessible(t *testing.T) {
	_, e := dev(t)
	modules := tools(t)
	b := open(t, e.Page)
	b.visit("/try")
	b.press("Break an event")
	b.sees("Broken so far")
	b.visit("/parked")
	b.sees("needs an operator")
	var key, event string
	b.value(`document.querySelector('a[href^="/parked/keys/"]').innerText`, &key)
	b.visit("/parked/keys/" + key)
	b.value(`document.querySelector(".events dd.mono").innerText`, &event)
	b.pass(modules, []string{
		"/", "/ranges", "/parked", "/parked/keys/" + key, "/events", "/events?state=parked", "/events?from=x", "/life/" + key, "/dead", "/members", "/doctor", "/try", "/acts",
		"/ranges/pause?lease=all", "/ranges/replay?lease=all&ago=10m", "/parked/retry-all?reason=invalid_event",
		"/parked/retry?store=yes&key=" + key, "/parked/mend?key=" + key + "&event=" + event, "/parked/skip?key=" + key + "&event=" + event, "/nothing",
	})
}

// pass runs the checkers on some pages.
func (b *tab) pass(modules string, paths []string) {
	t := b.T
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	dir := t.TempDir()
	for i, path := range paths {
		file := filepath.Join(dir, strings.Trim(strings.Map(func(r rune) rune {
			if r == '/' || r == '?' || r == '&' || r == '=' {
				return '-'
			}
			return r
		}, path), "-")+".html")
		fetch(t, b.base+path, file)
		files = append(files, file)
		for _, look := range []struct {
			width  int64
			scheme string
		}{{1200, "light"}, {1200, "dark"}, {400, "light"}, {400, "dark"}} {
			b.do(
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}),
				chromedp.EmulateViewport(look.width, 800),
			)
			b.visit(paths[i])
			b.forgive("404")
			var found string
			b.do(chromedp.Evaluate(string(axe)+";0", nil), chromedp.Evaluate(
				`axe.run().then((r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.help + " " + v.nodes.map((n) => n.target + " " + n.failureSummary).slice(0, 3).join("; "))))`,
				&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) },
			))
			var violations []string
			if err := json.Unmarshal([]byte(found), &violations); err != nil {
				t.Fatal(err)
			}
			for _, v := range violations {
				t.Errorf("%s, %s at %d px: axe-core finds %s", path, look.scheme, look.width, v)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "html-validate"), files...).CombinedOutput()
	if err != nil {
		t.Errorf("html-validate: %v\n%s", err, out)
	}
}

func fetch(t *testing.T, address, file string) {
	t.Helper()
	reply, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
}
