package page

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"path"

	"feedbox/infrastructure/httpapi/auth"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed assets
var embedded embed.FS

var assets, _ = fs.Sub(embedded, "assets") // the folder is embedded

// frame is the data of layout.html.
type frame struct {
	Status  int
	Title   string
	Section Section
	Live    bool
	Content template.HTML

	Product, Process string
	Sections         []Section
	Links            []Link
	Who              string
	SignedIn         bool
	May              bool
	Module, Style    string
}

// write renders the layout around the content and sends it.
func (p *Page) write(w http.ResponseWriter, r *http.Request, f *frame) {
	if page, ok := p.around(w, r, f); ok {
		p.send(w, r, f.Status, page)
	}
}

// around renders the layout around the content, or answers 500.
func (p *Page) around(w http.ResponseWriter, r *http.Request, f *frame) (page []byte, ok bool) {
	f.Product, f.Process, f.Sections, f.Links, f.May = p.options.Title, p.process, p.options.Sections, p.options.Links, p.may(r)
	if who := callerOf(r).ID; who != auth.Anonymous {
		f.Who = who
	}
	if _, err := r.Cookie(cookieName); err == nil {
		f.SignedIn = f.Who != ""
	}
	f.Module, f.Style = p.asset(f.Section, f.Section.Module), p.asset(f.Section, f.Section.Style)
	return p.execute(w, r, "layout.html", f)
}

// send sends a rendered page.
func (p *Page) send(w http.ResponseWriter, r *http.Request, status int, page []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Accept")
	w.WriteHeader(status)
	_, _ = w.Write(p.fill(r, page)) // fails only if the client has disconnected
}

// execute renders a template of this package, or answers 500.
func (p *Page) execute(w http.ResponseWriter, r *http.Request, file string, data any) (rendered []byte, ok bool) {
	var out bytes.Buffer
	if err := p.layout.ExecuteTemplate(&out, file, data); err != nil {
		p.options.Log.ErrorContext(r.Context(), "page not rendered", "path", r.URL.Path, "error", err)
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return nil, false
	}
	return out.Bytes(), true
}

// asset returns the address of an asset of a section, "" for no asset.
func (p *Page) asset(s Section, file string) string {
	if file == "" {
		return ""
	}
	return p.options.Prefix + "/assets/" + s.folder() + "/" + file
}

// render writes a page from a template of this package.
func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, title, file string, data any, section *Section) {
	content, ok := p.execute(w, r, file, data)
	if !ok {
		return
	}
	f := &frame{Status: status, Title: title, Content: template.HTML(content)} //nolint:gosec // rendered by html/template
	if section != nil {
		f.Section = *section
	} else {
		f.Section.Path = "-" // the navigation marks no section as current
	}
	p.write(w, r, f)
}

func (p *Page) refuse(w http.ResponseWriter, r *http.Request, refused *Refusal) {
	switch refused.Status {
	case http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		p.record(r, refused.Status, refused.Title)
	default: // a fault of the request or of a dependency
	}
	if streamWanted(r) {
		http.Error(w, refused.Error(), refused.Status)
		return
	}
	p.render(w, r, refused.Status, refused.Title, "refused.html", refused, nil)
}

// record logs a refusal, sampled, because a client can cause any number of them.
func (p *Page) record(r *http.Request, status int, reason string) {
	if ok, before := p.refusals.Line(); ok {
		p.options.Log.WarnContext(r.Context(), "request refused", "status", status, "reason", reason, "path", r.URL.Path, "from", r.RemoteAddr, "caller", callerOf(r).ID, "left_out", before)
	}
}

// serveAssets serves embedded files. They have no modification time, so a browser requests
// them again with each page; that costs little because they are few and small.
func (p *Page) serveAssets(name string, files fs.FS) http.Handler {
	serve := http.StripPrefix(p.options.Prefix+"/assets/"+name, http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Ext(r.URL.Path) == "" { // no listing of folders
			p.notFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
