package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedbox/infrastructure/httpapi/auth"
)

// Act is an action that a person may start.
type Act struct {
	// Path is its address below the section, without wildcards, such as "retry". The query
	// names the target.
	Path string
	// Title is the heading of its preview, such as "Retry a parked key".
	Title string
	// Verb is the word on the button.
	Verb string
	// Danger marks an act that cannot be undone.
	Danger bool
	// Preview describes the effect of Do with these values of the query and of Fields. It
	// returns a *Refusal or a fault if the act is not possible.
	Preview func(ctx context.Context, values url.Values) (*Preview, error)
	// Do runs the act. Its context ends with the page, not with the request, because an act
	// outlives the request that confirmed it.
	Do func(ctx context.Context, order *Order) error
	// AtOnce skips preview, reason and audit record: for demos only.
	AtOnce bool
}

// Preview describes an act before it runs.
type Preview struct {
	// Summary describes the effect in a sentence or two.
	Summary string
	// Facts help a person to decide.
	Facts []Fact
	// Warning is shown with emphasis.
	Warning string
	// Template of the section shows Data below the facts; default none.
	Template string
	Data     any
	// Fields are further inputs.
	Fields []Field
	// Typed must be typed to confirm; default nothing.
	Typed string
	// Stamp is a version of the state that the preview was built from. A confirmation with
	// another stamp is refused as stale. Default: never stale.
	Stamp string
	// Blocked is the reason why the act cannot run; the preview then has no button.
	Blocked string
}

// Fact is a name and a value. A URL turns the value into a link.
type Fact struct{ Name, Value, URL string }

// Field is an input of an act.
type Field struct {
	Name, Label, Value, Hint string
	// Kind is "text", "area" (many lines), or "check". Default text.
	Kind     string
	Required bool
}

// Order is a confirmed act.
type Order struct {
	// Values holds the query and the Fields.
	Values   url.Values
	Who, Why string // name and reason of the person
	// Stamp is that of the confirmed preview. Do compares it if the state may change until it has read it.
	Stamp string

	job *job
}

// Progress reports progress; a total of 0 is unknown.
func (o *Order) Progress(done, total int64) {
	o.job.update(func(s *Job) { s.Done, s.Total = done, total })
}

// Say adds a line to the act's output.
func (o *Order) Say(line string) { o.job.say(line) }

// Next sets the link shown with the result: an address below the prefix such as "/parked".
func (o *Order) Next(title, to string) {
	o.job.update(func(s *Job) { s.NextTitle, s.NextTo = title, to })
}

type actHandler struct {
	page    *Page
	section Section
	act     Act
}

// previewPage is the data of act.html.
type previewPage struct {
	Act
	*Preview
	Action, Back   string
	Values         []Fact
	Rendered       template.HTML // of Preview.Template
	StampHash      string
	Why, Who       string
	Stale, Missing string
}

// ask answers GET with the preview.
func (h *actHandler) ask(w http.ResponseWriter, r *http.Request) {
	if h.act.AtOnce {
		h.page.notFound(w, r)
		return
	}
	h.show(w, r, http.StatusOK, r.URL.Query(), previewPage{})
}

func (h *actHandler) show(w http.ResponseWriter, r *http.Request, status int, values url.Values, a previewPage) {
	ctx, cancel := context.WithTimeout(r.Context(), viewTimeout)
	defer cancel()
	preview, err := h.act.Preview(ctx, values)
	if err != nil {
		h.page.refuse(w, r, refusal(err))
		return
	}
	a.Act, a.Preview, a.Action, a.Back, a.StampHash = h.act, preview, r.URL.Path, h.back(r, values), hash(preview.Stamp)
	if who := callerOf(r).ID; who != auth.Anonymous {
		a.Who = who
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		own := slices.ContainsFunc(preview.Fields, func(f Field) bool { return f.Name == name })
		if own || slices.Contains(reserved, name) {
			continue
		}
		for _, value := range values[name] {
			a.Values = append(a.Values, Fact{Name: name, Value: value})
		}
	}
	if preview.Template != "" {
		var rendered strings.Builder
		if err := h.page.files[h.section.Path].ExecuteTemplate(&rendered, preview.Template, Shown{Data: preview.Data, May: h.page.may(r)}); err != nil {
			h.page.refuse(w, r, refusal(err))
			return
		}
		a.Rendered = template.HTML(rendered.String()) //nolint:gosec // rendered by html/template
	}
	h.page.render(w, r, status, h.act.Title, "act.html", a, &h.section)
}

// reserved lists the form fields of this package; an act must not use these names.
var reserved = []string{"token", "stamp", "why", "who", "typed", "back"}

// back returns the address that the person came from.
func (h *actHandler) back(r *http.Request, values url.Values) string {
	if to := values.Get("back"); to != "" {
		return h.page.back(to)
	}
	if u, err := url.Parse(r.Referer()); err == nil && u.Host == r.Host && u.Path != r.URL.Path {
		return h.page.back(u.RequestURI())
	}
	return strings.TrimSuffix(h.page.pattern(h.section.Path, ""), "{$}")
}

// do checks a confirmation and starts the act.
func (h *actHandler) do(w http.ResponseWriter, r *http.Request) {
	if refused := h.page.form(w, r, maxForm); refused != nil {
		h.page.refuse(w, r, refused)
		return
	}
	values := r.PostForm
	order := &Order{Values: url.Values{}, Who: callerOf(r).ID, Why: strings.TrimSpace(values.Get("why"))}
	for name, all := range values {
		if !slices.Contains(reserved, name) {
			order.Values[name] = all
		}
	}
	if order.Who == auth.Anonymous {
		order.Who = strings.TrimSpace(values.Get("who"))
	}
	if h.act.AtOnce {
		h.atOnce(w, r, order)
		return
	}
	a := previewPage{Why: order.Why, Who: order.Who}
	ctx, cancel := context.WithTimeout(r.Context(), viewTimeout)
	defer cancel()
	preview, err := h.act.Preview(ctx, values)
	if err != nil {
		h.page.refuse(w, r, refusal(err))
		return
	}
	status := http.StatusUnprocessableEntity
	switch {
	case hash(preview.Stamp) != values.Get("stamp"):
		status, a.Stale = http.StatusConflict, "The state has changed since you loaded this preview. Nothing was done. This is the current state; confirm again if you still want it."
	case preview.Blocked != "":
		status = http.StatusConflict
	case order.Who == "":
		a.Missing = "Enter your name: it goes into the audit log."
	case order.Why == "":
		a.Missing = "Enter a reason: it goes into the audit log."
	case preview.Typed != "" && strings.TrimSpace(values.Get("typed")) != preview.Typed:
		a.Missing = "Type " + preview.Typed + " to confirm."
	default:
		order.Stamp = preview.Stamp
		leave, refused := h.page.place(r)
		if refused != nil {
			h.page.refuse(w, r, refused)
			return
		}
		started := h.page.start(h.act, h.section, order, leave)
		started.wait(r.Context(), patience)
		http.Redirect(w, r, h.page.options.Prefix+"/acts/"+started.snapshot().ID, http.StatusSeeOther)
		return
	}
	h.show(w, r, status, values, a)
}

// patience bounds how long the confirming request waits for the act to end, because the
// browser then shows the result of a quick act without a progress page.
const patience = 1500 * time.Millisecond

// atOnce runs the act within the request.
func (h *actHandler) atOnce(w http.ResponseWriter, r *http.Request, order *Order) {
	leave, refused := h.page.place(r)
	if refused != nil {
		h.page.refuse(w, r, refused)
		return
	}
	defer leave()
	order.job = &job{done: make(chan struct{})}
	if err := h.act.Do(r.Context(), order); err != nil {
		if moved, ok := errors.AsType[*Moved](err); ok {
			http.Redirect(w, r, h.page.options.Prefix+moved.To, http.StatusSeeOther)
			return
		}
		h.page.refuse(w, r, refusal(err))
		return
	}
	http.Redirect(w, r, h.back(r, r.PostForm), http.StatusSeeOther)
}

func hash(stamp string) string {
	sum := sha256.Sum256([]byte(stamp))
	return hex.EncodeToString(sum[:8])
}
