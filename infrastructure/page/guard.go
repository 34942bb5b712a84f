package page

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"

	"feedbox/infrastructure/httpapi/auth"
)

// policy lets a browser load nothing from elsewhere and run no script but the files served
// here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func guardHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// maxForm bounds the body of a POST in bytes.
const maxForm = 4 << 20

// guard refuses what another site makes a browser send.
func (p *Page) guard(r *http.Request) *Refusal {
	if _, open := p.options.Auth.(auth.Open); open && !p.options.AnyHost && !ownName(r.Host) {
		return &Refusal{
			Status: http.StatusMisdirectedRequest, Title: "Not under this name",
			Detail: "Without authentication the page answers only as localhost or by a loopback address.",
			Next:   "Open it as http://localhost or http://127.0.0.1 with its port, or set FEEDBOX_AUTH.",
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	foreign := &Refusal{
		Status: http.StatusForbidden, Title: "Refused: this came from another site",
		Detail: "The page takes acts only from its own forms.", Next: "Open the page itself and do it there.",
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return foreign
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return foreign
		}
	}
	return nil
}

// ownName tells a name that leads to this machine whatever a name server says.
func ownName(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(trimBrackets(host))
	return ip != nil && ip.IsLoopback()
}

func trimBrackets(host string) string {
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}

// form reads the body of a POST and checks its token.
func (p *Page) form(w http.ResponseWriter, r *http.Request) *Refusal {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Title: "The form could not be read", Detail: err.Error(), Next: "Load the page again."}
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(p.token)) != 1 {
		return &Refusal{
			Status: http.StatusForbidden, Title: "This page is stale",
			Detail: "It was loaded before the process was started again, or did not come from here. Nothing was done.",
			Next:   "Go back, load the page again, and repeat what you wanted.",
		}
	}
	return nil
}

type callerKey struct{}

// callerOf returns who calls.
func callerOf(r *http.Request) auth.Principal {
	who, _ := r.Context().Value(callerKey{}).(auth.Principal)
	return who
}

// may tells whether the caller may act here.
func (p *Page) may(r *http.Request) bool {
	return p.options.Actions && callerOf(r).May(ScopeWrite)
}

// reading lets those in who may look.
func (p *Page) reading(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := p.options.Auth.Authenticate(r.Context(), p.sessions.credential(r))
		switch {
		case errors.Is(err, auth.ErrNoCredential), errors.Is(err, auth.ErrBadCredential):
			p.askToSignIn(w, r, http.StatusUnauthorized, err)
			return
		case err != nil:
			p.refuse(w, r, &Refusal{Status: http.StatusServiceUnavailable, Title: "Nobody can be let in now", Detail: err.Error() + ".", Next: "Try again in a moment."})
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
		if !who.May(ScopeRead) {
			p.refuse(w, r, &Refusal{Status: http.StatusForbidden, Title: "You may not look at this", Detail: who.ID + " has no scope " + ScopeRead.Name + ".", Next: "Have it granted, or sign in as somebody else."})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// acting lets those in who may act.
func (p *Page) acting(next http.Handler) http.Handler {
	return p.reading(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !p.options.Actions:
			p.refuse(w, r, &Refusal{Status: http.StatusForbidden, Title: "This page only shows", Detail: "It was started without the right to act. Nothing was done.", Next: "Start it with --actions, or use the commands of feedbox."})
		case !p.may(r):
			p.refuse(w, r, &Refusal{Status: http.StatusForbidden, Title: "You may look, but not act", Detail: callerOf(r).ID + " has no scope " + ScopeWrite.Name + ". Nothing was done.", Next: "Have it granted, or ask somebody who has it."})
		default:
			next.ServeHTTP(w, r)
		}
	}))
}
