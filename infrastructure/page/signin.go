package page

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"

	"feedbox/infrastructure/httpapi/auth"
)

// A browser cannot send a header of ours when it follows a link. So a credential may be
// given in a form instead; it stays in this process, and the browser gets a cookie that
// stands for it. It is judged anew at each request, as one in a header is.

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

// credential returns the request with the credential of its session, if it has one and
// sends none itself.
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

// add begins a session. The oldest one makes room when there are too many.
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

// askToSignIn shows the form for a credential.
func (p *Page) askToSignIn(w http.ResponseWriter, r *http.Request, status int, why error) {
	if streamWanted(r) {
		http.Error(w, why.Error(), status)
		return
	}
	w.Header().Set("WWW-Authenticate", p.options.Auth.Challenge())
	wrong := ""
	if why != auth.ErrNoCredential { //nolint:errorlint // the bare error says that nothing was sent
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

// back is an address of the page that a form may lead back to.
func (p *Page) back(to string) string {
	if !strings.HasPrefix(to, p.options.Prefix+"/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		return p.options.Prefix + "/"
	}
	return to
}
