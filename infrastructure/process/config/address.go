package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Address is a URL. Every way of printing it masks user, password, query and fragment, because
// services accept credentials there. Convert it to a string to use it.
type Address string

// String returns the masked form. It does not parse the URL, so that a malformed one is masked too.
func (a Address) String() string {
	scheme, rest, found := strings.Cut(string(a), "://")
	if !found {
		scheme, rest = "", string(a)
	} else {
		scheme += "://"
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = masked + rest[at:]
	}
	if more := strings.IndexAny(rest, "?#"); more >= 0 {
		rest = rest[:more+1] + masked
	}
	return scheme + rest
}

// Format masks the address for every verb.
func (a Address) Format(f fmt.State, verb rune) {
	text := a.String()
	if verb == 'q' {
		text = fmt.Sprintf("%q", text)
	}
	_, _ = f.Write([]byte(text))
}

// MarshalText masks the address for JSON and slog.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// hasUser reports whether the address holds a user or password.
func (a Address) hasUser() bool {
	u, err := url.Parse(string(a))
	return strings.Contains(string(a), "@") && (err != nil || u.User != nil)
}

// checkAnonymous refuses credentials in an address that is shown or whose client has others.
func checkAnonymous(address string) (problem, hint string) {
	if Address(address).hasUser() {
		return "holds a user or password", "remove them: the address is shown to others, or its client has a credential of its own"
	}
	return "", ""
}

// refusePlain reports an address whose scheme is one without TLS, unless its host is this machine
// or allowed.
func (r *report) refusePlain(variable, address, scheme, instead string) {
	if u, err := url.Parse(address); err == nil && u.Scheme == scheme {
		r.refuseHosts(variable, "use "+instead, u.Hostname())
	}
}

// refuseHosts reports an address that reaches hosts without TLS, unless each is this machine or
// allowed: credentials and personal data would be readable on the way.
func (r *report) refuseHosts(variable, advice string, hosts ...string) {
	for _, host := range hosts {
		if isLocal(host) || r.allows(host) || r.faulty(variable) {
			continue
		}
		r.add(variable, "reaches "+host+" without TLS", advice+", or add the host to FEEDBOX_PLAINTEXT_HOSTS if every machine on the way is trusted")
	}
}

func (r *report) allows(host string) bool {
	return slices.ContainsFunc(r.plaintext, func(one string) bool {
		one = strings.TrimSpace(one)
		return one == "*" || strings.EqualFold(one, host)
	})
}

// isLocal reports whether a host of an address is this machine: a loopback address, localhost or
// the path of a Unix socket.
func isLocal(host string) bool {
	return strings.HasPrefix(host, "/") || IsLoopback(net.JoinHostPort(host, "0"))
}

// hostOf returns the host of an address that may lack a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// checkPostgresTLS refuses a mode that may fall back to plain text, which the default of the driver
// does. The hosts are those that the driver will use: a parameter has precedence over the authority.
func checkPostgresTLS(report *report, name string, u *url.URL) {
	var hosts []string
	for one := range strings.SplitSeq(cmp.Or(u.Query().Get("host"), u.Host), ",") {
		hosts = append(hosts, hostOf(one))
	}
	switch mode := u.Query().Get("sslmode"); mode {
	case "verify-full":
	case "require", "verify-ca":
		if !slices.ContainsFunc(hosts, isLocal) {
			report.settings.warn(name, "does not verify the name of the server with sslmode="+mode+", so a server in between can read and change everything: set sslmode=verify-full")
		}
	default:
		report.refuseHosts(name, "set sslmode=verify-full", hosts...)
	}
}

// checkTelemetry refuses to send the headers of OpenTelemetry, which authenticate, without TLS.
func checkTelemetry(report *report, environ []string) {
	header := func(name string) bool { value, _ := Lookup(environ, "OTEL_EXPORTER_OTLP_"+name); return value != "" }
	if !header("HEADERS") && !header("TRACES_HEADERS") && !header("METRICS_HEADERS") {
		return
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"} {
		address, _ := Lookup(environ, name)
		report.refusePlain(name, address, "http", "https")
	}
}
