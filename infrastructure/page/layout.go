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

// frame is what the layout is made of.
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

// write puts content into the layout and sends it.
func (p *Page) write(w http.ResponseWriter, r *http.Request, f *frame) {
	f.Product, f.Process, f.Sections, f.Links, f.May = p.options.Title, p.process, p.options.Sections, p.options.Links, p.may(r)
	if who := callerOf(r).ID; who != auth.Anonymous {
		f.Who = who
	}
	if _, err := r.Cookie(cookieName); err == nil {
		f.SignedIn = f.Who != ""
	}
	f.Module, f.Style = p.asset(f.Section, f.Section.Module), p.asset(f.Section, f.Section.Style)
	var page bytes.Buffer
	if err := p.layout.ExecuteTemplate(&page, "layout.html", f); err != nil {
		p.options.Log.ErrorContext(r.Context(), "a page could not be rendered", "path", r.URL.Path, "error", err)
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Accept")
	w.WriteHeader(f.Status)
	_, _ = w.Write(page.Bytes()) // the reader has gone away
}

// asset is the address of an asset of a section, "" if it has none.
func (p *Page) asset(s Section, file string) string {
	if file == "" {
		return ""
	}
	return p.options.Prefix + "/assets/" + s.folder() + "/" + file
}

// render writes a page of the frame's own.
func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, title, file string, data any, section *Section) {
	var content bytes.Buffer
	if err := p.layout.ExecuteTemplate(&content, file, data); err != nil {
		p.options.Log.ErrorContext(r.Context(), "a page could not be rendered", "path", r.URL.Path, "error", err)
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	f := &frame{Status: status, Title: title, Content: template.HTML(content.String())} //nolint:gosec // rendered by html/template
	if section != nil {
		f.Section = *section
	} else {
		f.Section.Path = "-" // none is marked as the current one
	}
	p.write(w, r, f)
}

// refuse says what is wrong and what to do.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, refused *Refusal) {
	if streamWanted(r) {
		http.Error(w, refused.Error(), refused.Status)
		return
	}
	p.render(w, r, refused.Status, refused.Title, "refused.html", refused, nil)
}

// serveAssets serves files that change with the binary only. They carry no date, so a
// browser asks each time; they are few and small.
func (p *Page) serveAssets(name string, files fs.FS) http.Handler {
	serve := http.StripPrefix(p.options.Prefix+"/assets/"+name, http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Ext(r.URL.Path) == "" { // no listing of folders
			p.nothingHere(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
