package page

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/hostguard"
	"feedbox/infrastructure/httpapi/limit"
)

// policy lets a browser load nothing from other origins and run only the script files
// served here.
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

// maxForm bounds the body of a POST in bytes. It is large because a form may contain the
// document of an event.
const maxForm = 4 << 20

// maxSignIn bounds the forms that are read from anyone: a credential and an address.
const maxSignIn = 64 << 10

// guard refuses requests that another site made the browser send.
func (p *Page) guard(r *http.Request) *Refusal {
	if _, open := p.options.Auth.(auth.Open); (open || p.local.Load()) && !hostguard.Allows(r.Host, p.options.AllowedHosts...) {
		return &Refusal{
			Status: http.StatusMisdirectedRequest, Title: "Host name refused",
			Detail: "Without authentication, or on a loopback address, the page does not serve the host " + r.Host + ".", Next: hostguard.Advice,
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	foreign := &Refusal{
		Status: http.StatusForbidden, Title: "Refused: this came from another site",
		Detail: "The page accepts acts only from its own forms.", Next: "Open the page itself and act there.",
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

// tokenOf returns the token of the forms in a request's session. Without a session it belongs
// to the caller of the credential in the header, and that of the sign-in form to no one. It
// differs in each process, so that a form of an earlier one, whose preview may be outdated, is
// refused.
func (p *Page) tokenOf(r *http.Request) string {
	owner := "caller "
	if s := p.sessions.of(r); s != nil {
		owner = "session " + s.id
	} else if who := callerOf(r).ID; who != auth.Anonymous {
		owner += who
	}
	mac := hmac.New(sha256.New, p.secret)
	mac.Write([]byte(owner))
	return hex.EncodeToString(mac.Sum(nil))
}

// fill puts the token of the request into the forms of rendered HTML.
func (p *Page) fill(r *http.Request, rendered []byte) []byte {
	return bytes.ReplaceAll(rendered, []byte(p.blank), []byte(p.tokenOf(r)))
}

// form reads the body of a POST, of most bytes at most, and checks its token.
func (p *Page) form(w http.ResponseWriter, r *http.Request, most int64) *Refusal {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Title: "The form could not be read", Detail: err.Error(), Next: "Load the page again."}
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(p.tokenOf(r))) != 1 {
		return &Refusal{
			Status: http.StatusForbidden, Title: "This page is stale",
			Detail: "It was loaded before the process restarted or in another session, or came from elsewhere. Nothing was done.",
			Next:   "Go back, load the page again, and repeat the act.",
		}
	}
	limit.Protect(r.Context())
	return nil
}

type callerKey struct{}

// caller is an authenticated caller with its session, nil without one.
type caller struct {
	auth.Principal
	session *session
}

func callerOf(r *http.Request) auth.Principal {
	who, _ := r.Context().Value(callerKey{}).(caller)
	return who.Principal
}

// sessionOf returns the channel that is closed when the session of a request ends; nil without a
// session.
func sessionOf(r *http.Request) <-chan struct{} {
	if who, _ := r.Context().Value(callerKey{}).(caller); who.session != nil {
		return who.session.ended
	}
	return nil
}

func (p *Page) may(r *http.Request) bool {
	return p.options.Actions && callerOf(r).May(ScopeWrite)
}

// reading wraps a handler that needs ScopeRead.
func (p *Page) reading(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session := p.sessions.of(r) // before its credential is judged, so that a sign-out in between is noticed
		who, err := p.options.Auth.Authenticate(r.Context(), p.sessions.credential(r))
		if err == nil && who.ID != auth.Anonymous {
			limit.Identify(r.Context(), who.ID)
		}
		switch {
		case errors.Is(err, auth.ErrNoCredential), errors.Is(err, auth.ErrBadCredential):
			p.askToSignIn(w, r, http.StatusUnauthorized, err)
			return
		case err != nil:
			p.refuse(w, r, &Refusal{Status: http.StatusServiceUnavailable, Title: "Sign-in is unavailable", Detail: err.Error() + ".", Next: "Try again in a moment."})
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{who, session}))
		if !who.May(ScopeRead) {
			p.refuse(w, r, &Refusal{Status: http.StatusForbidden, Title: "You may not read this page", Detail: who.ID + " does not have " + ScopeRead.Name + ".", Next: "Ask for the app role " + ScopeRead.Name + ", or sign in with another credential."})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mayStillRead judges a reader again, because a credential expires and roles are taken away.
// During an outage of the identity provider the last judgement holds.
func (p *Page) mayStillRead(r *http.Request) bool {
	ctx, cancel := context.WithTimeout(r.Context(), viewTimeout)
	defer cancel()
	who, err := p.options.Auth.Authenticate(ctx, p.sessions.credential(r))
	if errors.Is(err, auth.ErrNoCredential) || errors.Is(err, auth.ErrBadCredential) {
		return false
	}
	return err != nil || who.May(ScopeRead)
}

// acting wraps a handler that needs ScopeWrite.
func (p *Page) acting(next http.Handler) http.Handler {
	return p.reading(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !p.options.Actions:
			p.refuse(w, r, &Refusal{Status: http.StatusForbidden, Title: "This page is read-only", Detail: "It was started without --actions. Nothing was done.", Next: "Start it with --actions, or use the feedbox commands."})
		case !p.may(r):
			p.refuse(w, r, &Refusal{Status: http.StatusForbidden, Title: "You may read, but not act", Detail: callerOf(r).ID + " does not have " + ScopeWrite.Name + ". Nothing was done.", Next: "Ask for the app role " + ScopeWrite.Name + " or an API key with write access, or ask a person who has it."})
		default:
			next.ServeHTTP(w, r)
		}
	}))
}
