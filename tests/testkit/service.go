package testkit

import (
	"net/http"
	"regexp"
	"testing"
	"time"
)

// AnyPorts returns flags that make feedbox-dev use free ports, so that tests can run in parallel.
func AnyPorts(more ...string) []string {
	return append([]string{"--api", "127.0.0.1:0", "--ops", "127.0.0.1:0", "--page", "127.0.0.1:0", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0"}, more...)
}

// EmulatorPorts is AnyPorts for `feedbox-dev emulators`.
func EmulatorPorts(more ...string) []string {
	return append([]string{"emulators", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0"}, more...)
}

var apiAddress = regexp.MustCompile(`"api":"([^"]+)"`)

// StartAPI runs `feedbox api` on a free port and returns its base URL once it answers.
func StartAPI(t *testing.T, b Binaries, e Endpoints, more ...string) (*Process, string) {
	t.Helper()
	return StartAPIWith(t, b, e.ServiceEnv(more...))
}

// StartAPIWith is StartAPI with the environment env.
func StartAPIWith(t *testing.T, b Binaries, env []string) (*Process, string) {
	t.Helper()
	env = append([]string{"FEEDBOX_API_LISTEN=127.0.0.1:0", "FEEDBOX_LOG_FORMAT=json"}, env...)
	p := Start(t, "feedbox api", b.Feedbox, env, "api")
	var base string
	Eventually(t, time.Minute, "the API", func() bool {
		if p.Ended() {
			t.Fatalf("feedbox api ended: %s", p.Output())
		}
		m := apiAddress.FindStringSubmatch(p.Output())
		if m == nil {
			return false
		}
		base = "http://" + m[1]
		resp, err := http.Get(base + "/api/contacts")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p, base
}

// FastLeases returns the timings of the fault tests: a lease expires after 3 s.
func FastLeases() []string {
	return []string{"FEEDBOX_LEASE_EXPIRY=3s", "FEEDBOX_LEASE_RENEW=1s", "FEEDBOX_LEASE_ACQUIRE=1s", "FEEDBOX_RELAY_POLL_MAX=50ms", "FEEDBOX_PARKED_POLL=500ms"}
}

// StartRelay runs `feedbox relay` with FastLeases under a unique name. more overrides other variables.
func StartRelay(t *testing.T, b Binaries, e Endpoints, name string, more ...string) *Process {
	t.Helper()
	env := append(e.ServiceEnv(
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING="+e.ServiceBusConnectionString,
		"FEEDBOX_SERVICEBUS_TOPIC="+e.Topic,
		"FEEDBOX_INSTANCE="+name,
		"FEEDBOX_LOG_FORMAT=json",
	), FastLeases()...)
	return Start(t, name, b.Feedbox, append(env, more...), "relay")
}
