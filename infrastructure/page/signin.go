package page

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"feedbox/infrastructure/httpapi/auth"
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

type session struct {
	header, value string
	until         time.Time
}

type sessions struct {
	mu   sync.Mutex
	byID map[string]session
}

func newSessions() *sessions { return &sessions{byID: map[string]session{}} }

// credential returns the request with the credential of its session. A request with a
// credential of its own, or without a session, is returned unchanged.
func (s *sessions) credential(r *http.Request) *http.Request {
	cookie, err := r.Cookie(cookieName)
	if err != nil || r.Header.Get("Authorization") != "" || r.Header.Get(auth.HeaderAPIKey) != "" {
		return r
	}
	s.mu.Lock()
	found, ok := s.byID[cookie.Value]
	s.mu.Unlock()
	if !ok || time.Now().After(found.until) {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set(found.header, found.value)
	return r
}

// add starts a session. At the limit it evicts the oldest one.
func (s *sessions) add(one session) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= maxSessions {
		var oldest string
		for id, other := range s.byID {
			if oldest == "" || other.until.Before(s.byID[oldest].until) {
				oldest = id
			}
		}
		delete(s.byID, oldest)
	}
	id = rand.Text()
	s.byID[id] = one
	return id
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

func (p *Page) askToSignIn(w http.ResponseWriter, r *http.Request, status int, why error) {
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
	p.render(w, r, status, "Sign in", "signin.html", map[string]any{"Wrong": wrong, "Back": back, "Key": p.options.Auth.Challenge() == "ApiKey"}, nil)
}

func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	if refused := p.form(w, r); refused != nil {
		p.refuse(w, r, refused)
		return
	}
	one := session{header: "Authorization", value: "Bearer " + strings.TrimSpace(r.PostForm.Get("credential")), until: time.Now().Add(sessionLife)}
	if p.options.Auth.Challenge() == "ApiKey" {
		one.header, one.value = auth.HeaderAPIKey, strings.TrimSpace(r.PostForm.Get("credential"))
	}
	try := r.Clone(r.Context())
	try.Header.Set(one.header, one.value)
	if _, err := p.options.Auth.Authenticate(r.Context(), try); err != nil {
		p.askToSignIn(w, r, http.StatusUnauthorized, err)
		return
	}
	http.SetCookie(w, p.cookie(r, p.sessions.add(one), int(sessionLife.Seconds())))
	http.Redirect(w, r, p.back(r.PostForm.Get("back")), http.StatusSeeOther)
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	if refused := p.form(w, r); refused != nil {
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
