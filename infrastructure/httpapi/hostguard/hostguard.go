// Package hostguard keeps web pages of other sites away from servers that only this machine can
// reach. By DNS rebinding a page points its own host name to 127.0.0.1. The browser then treats
// the server as part of that site: it sends any header and lets the page read the answers. Such
// requests carry the page's host name, so a listener on a loopback address refuses unknown hosts.
//
// A listener on any other address is not guarded, because clients reach it by names that only
// the ingress before it knows, and other machines could set the header as they like.
package hostguard

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Any as an allowed host admits all hosts.
const Any = "*"

// Advice says how to allow a host.
const Advice = "Use localhost, or add the host to FEEDBOX_ALLOWED_HOSTS (in Go: to the option AllowedHosts)."

// Handler returns next, guarded if listener is bound to a loopback address. The allowed hosts may
// have ports; they are ignored.
func Handler(next http.Handler, listener net.Listener, allowed ...string) http.Handler {
	if !Guards(listener) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Allows(r.Host, allowed...) {
			http.Error(w, fmt.Sprintf("This address does not serve the host %q. %s", r.Host, Advice), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Guards reports whether a listener is bound to a loopback address. Networks in memory and nil
// are not.
func Guards(listener net.Listener) bool {
	if listener == nil {
		return false
	}
	addr, ok := listener.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// Allows reports whether a Host header names this machine or one of the allowed hosts. An empty
// one passes, because every browser sends the host.
func Allows(host string, allowed ...string) bool {
	if slices.Contains(allowed, host) { // the usual case, and cheaper than to read the name
		return true
	}
	name := nameOf(host)
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || net.ParseIP(name).IsLoopback() {
		return true
	}
	return slices.ContainsFunc(allowed, func(one string) bool { return one == Any || nameOf(one) == name })
}

// nameOf returns the name in lower case, without port and brackets.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
