package page

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/limit"
)

// A browser cannot send an Authorization header when it follows a link. So a person may
// enter the credential in a form instead: it stays in this process, and the browser gets a
// session cookie. Each request authenticates the credential again, like one in a header.

// The sessions are bounded because their credentials stay in memory.
const (
	cookieName  = "feedbox-page"
	sessionLife = 12 * time.Hour
	maxSessions = 1000
)

// Wrong credentials have a rate per address; more are answered with 429. A right credential is
// accepted at any rate: behind a proxy all people have one address, and an attacker must not
// keep them out. So the rate saves work and log lines. Guessing is hopeless because credentials
// are random and long.
const (
	guessRate  = 0.2 // per second
	guessBurst = 10
)

type session struct {
	id, owner     string // the owner is the id of a caller
	header, value string
	until         time.Time
	expiry        *time.Timer   // removes it, because it has a credential
	ended         chan struct{} // closed when it is removed
}

type sessions struct {
	mu   sync.Mutex
	byID map[string]*session
}

func newSessions() *sessions { return &sessions{byID: map[string]*session{}} }

// of returns the session of a request. It returns nil if there is none, or if the request has a
// credential of its own.
func (s *sessions) of(r *http.Request) *session {
	cookie, err := r.Cookie(cookieName)
	if err != nil || r.Header.Get("Authorization") != "" || r.Header.Get(auth.HeaderAPIKey) != "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[cookie.Value]
}

// credential returns the request with the credential of its session. A request with a
// credential of its own, or without a session, is returned unchanged.
func (s *sessions) credential(r *http.Request) *http.Request {
	found := s.of(r)
	if found == nil {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set(found.header, found.value)
	return r
}

// add starts a session. At the limit it evicts the oldest one of the owner with most, so that no person can
// end the sessions of others.
func (s *sessions) add(one *session) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= maxSessions {
		s.end(s.oldestOfMost(one.owner))
	}
	one.id, one.ended = rand.Text(), make(chan struct{})
	one.expiry = time.AfterFunc(time.Until(one.until), func() { s.remove(one.id) })
	s.byID[one.id] = one
	return one.id
}

// oldestOfMost returns the session to evict for a new one. The caller must hold the mutex.
func (s *sessions) oldestOfMost(newcomer string) (best string) {
	owned := map[string]int{newcomer: 1}
	for _, one := range s.byID {
		owned[one.owner]++
	}
	for id, one := range s.byID {
		if kept := s.byID[best]; kept == nil || cmp.Or(owned[kept.owner]-owned[one.owner], one.until.Compare(kept.until)) < 0 {
			best = id
		}
	}
	return best
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(id)
}

// end removes a session and ends its streams. The caller must hold the mutex.
func (s *sessions) end(id string) {
	if found := s.byID[id]; found != nil {
		found.expiry.Stop()
		close(found.ended)
		delete(s.byID, id)
	}
}

func (p *Page) askToSignIn(w http.ResponseWriter, r *http.Request, status int, why error) {
	if errors.Is(why, auth.ErrBadCredential) {
		if wait := p.guesses.Take(limit.AddressOf(r.RemoteAddr)); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
			p.refuse(w, r, &Refusal{Status: http.StatusTooManyRequests, Title: "Too many wrong credentials", Detail: "This address has sent too many of them.", Next: "Wait a moment, then sign in with a credential that is valid."})
			return
		}
		p.record(r, status, "wrong credential")
	}
	if streamWanted(r) {
		http.Error(w, why.Error(), status)
		return
	}
	w.Header().Set("WWW-Authenticate", p.options.Auth.Challenge())
	wrong := ""
	if why != auth.ErrNoCredential { //nolint:errorlint // only the bare error means that no credential was sent
		wrong = why.Error()
	}
	back := r.URL.RequestURI()
	if r.Method != http.MethodGet {
		back = p.options.Prefix + "/"
	}
	if page, ok := p.signInPage(w, r, status, wrong); ok {
		p.send(w, r, status, bytes.ReplaceAll(page, []byte(p.blankTo), []byte(template.HTMLEscapeString(back))))
	}
}

// signInPage returns the page for sign-in with blanks for the address to return to and for the token.
// That of a request without a credential is rendered once, because anyone may request it, any number of
// times.
func (p *Page) signInPage(w http.ResponseWriter, r *http.Request, status int, wrong string) (page []byte, ok bool) {
	if kept := p.signing.Load(); kept != nil && wrong == "" {
		return *kept, true
	}
	data := map[string]any{"Wrong": wrong, "Back": p.blankTo, "Key": p.options.Auth.Challenge() == "ApiKey"}
	content, ok := p.execute(w, r, "signin.html", data)
	if !ok {
		return nil, false
	}
	f := &frame{Status: status, Title: "Sign in", Content: template.HTML(content)} //nolint:gosec // rendered by html/template
	f.Section.Path = "-"                                                           // the navigation marks no section as current
	if page, ok = p.around(w, r, f); ok && wrong == "" {
		p.signing.Store(&page)
	}
	return page, ok
}

func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	if refused := p.form(w, r, maxSignIn); refused != nil {
		p.refuse(w, r, refused)
		return
	}
	one := &session{header: "Authorization", value: "Bearer " + strings.TrimSpace(r.PostForm.Get("credential")), until: time.Now().Add(sessionLife)}
	if p.options.Auth.Challenge() == "ApiKey" {
		one.header, one.value = auth.HeaderAPIKey, strings.TrimSpace(r.PostForm.Get("credential"))
	}
	try := r.Clone(r.Context())
	try.Header.Set(one.header, one.value)
	principal, err := p.options.Auth.Authenticate(r.Context(), try)
	if err != nil {
		p.askToSignIn(w, r, http.StatusUnauthorized, err)
		return
	}
	one.owner = principal.ID
	http.SetCookie(w, p.cookie(r, p.sessions.add(one), int(sessionLife.Seconds())))
	http.Redirect(w, r, p.back(r.PostForm.Get("back")), http.StatusSeeOther)
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	if refused := p.form(w, r, maxSignIn); refused != nil {
		p.refuse(w, r, refused)
		return
	}
	if cookie, err := r.Cookie(cookieName); err == nil {
		p.sessions.remove(cookie.Value)
	}
	http.SetCookie(w, p.cookie(r, "", -1))
	http.Redirect(w, r, p.options.Prefix+"/", http.StatusSeeOther)
}

func (p *Page) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: p.options.Prefix + "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}

// back returns to if it is an address of the page, and the start page otherwise, because a
// form must not redirect to another site. Browsers ignore control characters: they read a slash,
// a tab and a slash as two slashes.
func (p *Page) back(to string) string {
	if !strings.HasPrefix(to, p.options.Prefix+"/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(c rune) bool { return c == '\\' || unicode.IsControl(c) }) {
		return p.options.Prefix + "/"
	}
	return to
}
