package page

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
)

// shownView serves one view: as a page, or as the stream of its content.
type shownView struct {
	page    *Page
	section Section
	view    View
	files   *template.Template // default: the section's
}

func (v *shownView) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v.view.Every > 0 && streamWanted(r) {
		v.page.stream(w, r, v.view.Every, func() ([]byte, error) { return v.content(r) })
		return
	}
	content, err := v.content(r)
	if moved, ok := errors.AsType[*Moved](err); ok {
		http.Redirect(w, r, v.page.options.Prefix+moved.To, http.StatusSeeOther)
		return
	}
	if err != nil {
		v.page.refuse(w, r, refusal(err))
		return
	}
	v.page.write(w, r, &frame{Status: http.StatusOK, Title: v.view.Title, Section: v.section, Live: v.view.Every > 0, Content: template.HTML(content)}) //nolint:gosec // rendered by html/template
}

func (v *shownView) content(r *http.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(r.Context(), viewTimeout)
	defer cancel()
	data, err := v.view.Data(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	files := v.files
	if files == nil {
		files = v.page.files[v.section.Path]
	}
	var content bytes.Buffer
	err = files.ExecuteTemplate(&content, v.view.Template, Shown{Data: data, May: v.page.may(r), Who: callerOf(r).ID, URL: r.URL.RequestURI()})
	return content.Bytes(), err
}
