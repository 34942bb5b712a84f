//go:build browser

package page

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// console runs feedbox console on the services of a feedbox-dev.
func console(t *testing.T, e endpoints, listen string, variables []string, args ...string) *testkit.Process {
	t.Helper()
	p := testkit.Start(t, "feedbox console", testkit.Build(t).Feedbox, consoleVariables(e, listen, variables...), append([]string{"console"}, args...)...)
	await(t, "feedbox console", func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return p
}

// A live view reconnects to a restarted process. A form of the earlier process is refused.
func TestLiveViewReconnectsAfterRestart(t *testing.T) {
	_, e := dev(t)
	listen := servers.Address(t)
	p := console(t, e, listen, []string{"FEEDBOX_CONSOLE_PREFIX=/ops"}, "--actions")
	b := open(t, "http://"+listen+"/ops")
	b.visit("/ranges")
	b.sees("4 healthy")
	b.becomes(`document.getElementById("live-state").innerText === "live"`)
	b.value(`window.before = true`, nil)
	form := open(t, "http://"+listen+"/ops")
	form.visit("/ranges/retry?lease=all")
	form.sees("reset failure counts")
	p.Terminate(t.Context())
	b.sees("reconnecting")
	console(t, e, listen, []string{"FEEDBOX_CONSOLE_PREFIX=/ops"}, "--actions")
	b.becomes(`!window.before && document.getElementById("live-state")?.innerText === "live"`)
	b.forgive("ERR_")
	form.confirm("Retry")
	form.sees("This page is stale")
	form.forgive("403")
	form.forgive("ERR_")
}

// A form of another origin is refused, also from the same machine.
func TestFormOfAnotherSiteIsRefused(t *testing.T) {
	_, e := dev(t)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>evil</title><form method="post" action="` + e.Page + `/ranges/pause"><input name="lease" value="all"><button>win</button></form>`))
	}))
	t.Cleanup(evil.Close)
	b := open(t, evil.URL)
	b.visit("/")
	b.press("win")
	b.sees("this came from another site")
	b.forgive("403")
	b.forgive("favicon")
}

// A caller without credential or with a key of the API must sign in, and an operator without the
// write role cannot act.
func TestScopesDecideWhatACallerMayDo(t *testing.T) {
	_, e := dev(t)
	listen := servers.Address(t)
	hash := func(key string) string {
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:])
	}
	console(t, e, listen, []string{"FEEDBOX_AUTH=apikey", "FEEDBOX_AUTH_API_KEYS=shop:write:" + hash("may-write"), "FEEDBOX_CONSOLE_API_KEYS=ann:write:" + hash("may-act") + ",bob:read:" + hash("may-look")}, "--actions")
	b := open(t, "http://"+listen)
	b.visit("/ranges")
	b.sees("Enter an API key")
	b.fill("credential", "may-write")
	b.press("Sign in")
	b.sees("the credential is not valid")
	b.forgive("401")
	b.fill("credential", "may-look")
	b.press("Sign in")
	b.sees("apikey:bob") // the form to sign in is read-only, too
	b.visit("/ranges/pause?lease=all")
	b.sees("You may read, but not act")
	b.forgive("403")
	b.press("Sign out")
	b.forgive("401")
	b.sees("Enter an API key")
	b.fill("credential", "may-act")
	b.press("Sign in")
	b.sees("apikey:ann")
	b.forgive("401")
	b.visit("/ranges/retry?lease=all")
	b.confirm("Retry")
	b.sees("Noted: retry")
	b.sees("apikey:ann")
}

// Without --actions the page offers no acts and refuses them.
func TestConsoleWithoutActionsIsReadOnly(t *testing.T) {
	_, e := dev(t)
	listen := servers.Address(t)
	console(t, e, listen, nil)
	b := open(t, "http://"+listen)
	b.visit("/ranges")
	b.sees("4 healthy")
	b.sees("read-only")
	var buttons int
	b.value(`document.querySelectorAll('main a.button, main form[method=post]').length`, &buttons)
	if buttons != 0 {
		t.Errorf("%d acts are offered", buttons)
	}
	b.visit("/ranges/pause?lease=all")
	b.sees("This page is read-only")
	b.forgive("403")
}
