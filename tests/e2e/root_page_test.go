package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"feedbox/tests/testkit"
)

var link = regexp.MustCompile(`href="([^"]+)"`)

// The root page of feedbox-dev links to all other pages, and each link works.
func TestRootPageLinksWork(t *testing.T) {
	dev, e := testkit.StartDev(t, testkit.Build(t), testkit.AnyPorts("--ephemeral")...)
	if !strings.HasPrefix(dev.Output(), "starting the emulators") {
		t.Errorf("the output does not begin with the current step:\n%s", dev.Output())
	}
	root := request(t, http.MethodGet, e.API+"/", "", nil)
	wantStatus(t, root, http.StatusOK)
	if ct := root.header.Get("Content-Type"); !strings.HasPrefix(ct, "text/html") {
		t.Errorf("content type %q", ct)
	}
	seen := map[string]bool{}
	for _, found := range link.FindAllStringSubmatch(root.body, -1) {
		address := found[1]
		if strings.HasPrefix(address, "#") {
			continue // on the same page
		}
		if strings.HasPrefix(address, "/") {
			address = strings.TrimSuffix(e.Page, "/") + address
		}
		seen[found[1]] = true
		wantStatus(t, request(t, http.MethodGet, address, "", nil), http.StatusOK)
	}
	for _, address := range []string{"/ranges", "/parked", e.API + "/docs", e.Ops + "/metrics"} {
		if !seen[address] {
			t.Errorf("no link leads to %s:\n%s", address, root.body)
		}
	}
	if !strings.Contains(dev.Output(), e.API+"/docs") {
		t.Errorf("the banner does not name /docs:\n%s", dev.Output())
	}
	wantProblem(t, request(t, http.MethodPost, e.API+"/", "{}", nil), http.StatusMethodNotAllowed)
}
