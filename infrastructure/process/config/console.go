package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Console is the configuration of the operations page, besides that of the relays it shows.
type Console struct {
	Log     Log     `envPrefix:"LOG_"`
	Auth    Auth    // FEEDBOX_AUTH and FEEDBOX_AUTH_
	APIKeys APIKeys `env:"CONSOLE_API_KEYS" doc:"operators of the page in mode apikey, in the form of FEEDBOX_AUTH_API_KEYS; write also allows actions; a key of the API is not accepted"`

	Listen string `env:"CONSOLE_LISTEN" envDefault:"127.0.0.1:8070" check:"listen" doc:"address of the operations page"`
	// Prefix is the path it is served under, for a proxy that serves other things beside it.
	Prefix     string        `env:"CONSOLE_PREFIX" doc:"path that all addresses of the operations page begin with, such as /feedbox; default none"`
	Metrics    []Address     `env:"CONSOLE_METRICS" doc:"addresses of the metrics of the relays, and of the API, separated by commas, such as http://relay:8090/metrics; default none: the operations page shows no rates then"`
	Management Address       `env:"CONSOLE_MANAGEMENT" check:"anonymous" doc:"URL of the broker's management API, for emulators; default where the broker has it"`
	Window     time.Duration `env:"CONSOLE_WINDOW" envDefault:"10m" min:"20s" max:"168h" doc:"duplicate detection window of the topic, for previews of what is sent again"`
	TraceURL   Address       `env:"TRACE_URL" check:"anonymous" doc:"URL of a trace in the tool that shows traces, with {traceId} in the place of its id, for example http://jaeger:16686/trace/{traceId}; default none: the operations page shows the id without a link"`

	MaxConnections int `env:"CONSOLE_MAX_CONNECTIONS" envDefault:"500" min:"2" max:"100000" doc:"open connections of the operations page; one more takes the place of one of the reader or address that has most; half of them may be live views"`
	PerAddress     int `env:"MAX_CONNECTIONS_PER_ADDRESS" envDefault:"0" min:"0" max:"1000000" doc:"open connections of one address; one more takes the place of another of that address; 0 is no limit, because behind a proxy all clients have one address"`

	OpsListen      string   `env:"OPS_LISTEN" envDefault:"127.0.0.1:0" check:"listen" doc:"address of /livez and /readyz, and of /metrics of API and relay; port 0 takes a free one"`
	AllowedHosts   []string `env:"ALLOWED_HOSTS" doc:"host names that addresses on loopback serve besides localhost, separated by commas, such as that of a proxy on this machine; * is any; default none, because web pages can reach loopback addresses by DNS rebinding"`
	PlaintextHosts []string `env:"PLAINTEXT_HOSTS" doc:"hosts besides this machine that may be reached without TLS, separated by commas; * is any; default none, because credentials and personal data are readable on the way"`

	settings
}

var prefixForm = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)

// LoadConsole reads the configuration of the operations page from environ, as LoadAPI does.
// That of the relay is read by LoadRelay.
func LoadConsole(environ []string) (*Console, error) {
	c := &Console{}
	report := load(c, environ)
	report.plaintext = c.PlaintextHosts
	checkAuth(report, c.Auth, "FEEDBOX_CONSOLE_LISTEN", c.Listen, "FEEDBOX_CONSOLE_API_KEYS", c.APIKeys)
	if !prefixForm.MatchString(c.Prefix) {
		report.add("FEEDBOX_CONSOLE_PREFIX", "is not a path", "begin with a slash, do not end with one, and use letters, digits and -._~, for example /feedbox")
	}
	for _, address := range c.Metrics {
		if !IsHTTP(string(address)) {
			report.add("FEEDBOX_CONSOLE_METRICS", fmt.Sprintf("holds %v, which is not a URL", address), "write for example http://relay:8090/metrics")
		}
		if address.hasUser() { // metrics themselves may be read by everyone on the network
			report.refusePlain("FEEDBOX_CONSOLE_METRICS", string(address), "http", "https")
		}
	}
	if c.Management != "" && !IsHTTP(string(c.Management)) {
		report.add("FEEDBOX_CONSOLE_MANAGEMENT", "is not a URL", "write for example http://127.0.0.1:5300")
	}
	report.refusePlain("FEEDBOX_CONSOLE_MANAGEMENT", string(c.Management), "http", "https")
	if c.TraceURL != "" && (!IsHTTP(string(c.TraceURL)) || !strings.Contains(string(c.TraceURL), "{traceId}")) {
		report.add("FEEDBOX_TRACE_URL", "is not a URL with {traceId}", "write for example http://jaeger:16686/trace/{traceId}")
	}
	c.settings = report.settings
	return c, report.err()
}

// IsHTTP reports whether text is an http or https URL.
func IsHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
