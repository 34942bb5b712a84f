package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedbox/infrastructure/httpapi/auth"
)

// Act is something that a person has done.
type Act struct {
	// Path is its address below the section, without wildcards, such as "retry". What it
	// is done to stands in the query.
	Path string
	// Title is the heading of its preview, such as "Retry a parked key".
	Title string
	// Verb is the word on the button.
	Verb string
	// Danger marks what cannot be undone.
	Danger bool
	// Preview says what Do would do, with these values of the query and of Fields. A
	// *Refusal or a fault says why it is not possible.
	Preview func(ctx context.Context, values url.Values) (*Preview, error)
	// Do does it. Its context ends with the page, not with the request.
	Do func(ctx context.Context, order *Order) error
	// AtOnce leaves out preview, reason and record: for demos only.
	AtOnce bool
}

// Preview is what an act shows before it is done.
type Preview struct {
	// Summary is a sentence or two on what would happen.
	Summary string
	// Facts are what a person decides by.
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
	// Stamp stands for all that the preview depends on; if it has changed when the act
	// is confirmed, it is refused. Default: no matter.
	Stamp string
	// Blocked says why the act cannot be done; then there is no button.
	Blocked string
}

// Fact is a name and a value. URL makes a link of the value.
type Fact struct{ Name, Value, URL string }

// Field is an input of an act.
type Field struct {
	Name, Label, Value, Hint string
	// Kind is "text", "area" (many lines), or "check". Default text.
	Kind     string
	Required bool
}

// Order is an act that was confirmed.
type Order struct {
	// Values are those of the query and of Fields.
	Values url.Values
	// Who wants it, and Why.
	Who, Why string

	job *job
}

// Progress tells how far it is; a total of 0 is unknown.
func (o *Order) Progress(done, total int64) { o.job.progress(done, total) }

// Say adds a line to what the person reads.
func (o *Order) Say(line string) { o.job.say(line) }

// Next is where the result leads: an address below the prefix such as "/parked".
func (o *Order) Next(title, to string) { o.job.leads(title, to) }

type actHandler struct {
	page    *Page
	section Section
	act     Act
}

// asked is what the template of a preview gets.
type asked struct {
	Act
	*Preview
	Action, Back   string
	Values         []Fact
	Drawn          template.HTML
	StampHash      string
	Why, Who       string
	Stale, Missing string
}

// ask shows the preview.
func (h *actHandler) ask(w http.ResponseWriter, r *http.Request) {
	if h.act.AtOnce {
		h.page.nothingHere(w, r)
		return
	}
	h.show(w, r, http.StatusOK, r.URL.Query(), asked{})
}

func (h *actHandler) show(w http.ResponseWriter, r *http.Request, status int, values url.Values, a asked) {
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
	for _, name := range slices.Sorted(keys(values)) {
		own := slices.ContainsFunc(preview.Fields, func(f Field) bool { return f.Name == name })
		if own || slices.Contains(reserved, name) {
			continue
		}
		for _, value := range values[name] {
			a.Values = append(a.Values, Fact{Name: name, Value: value})
		}
	}
	if preview.Template != "" {
		var drawn strings.Builder
		if err := h.page.files[h.section.Path].ExecuteTemplate(&drawn, preview.Template, Shown{Data: preview.Data, May: h.page.may(r)}); err != nil {
			h.page.refuse(w, r, refusal(err))
			return
		}
		a.Drawn = template.HTML(drawn.String()) //nolint:gosec // rendered by html/template
	}
	h.page.render(w, r, status, h.act.Title, "act.html", a, &h.section)
}

// reserved are the fields of the frame itself.
var reserved = []string{"token", "stamp", "why", "who", "typed", "back"}

func keys(values url.Values) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range values {
			if !yield(name) {
				return
			}
		}
	}
}

// back is where the person came from.
func (h *actHandler) back(r *http.Request, values url.Values) string {
	if to := values.Get("back"); to != "" {
		return h.page.back(to)
	}
	if u, err := url.Parse(r.Referer()); err == nil && u.Host == r.Host && u.Path != r.URL.Path {
		return h.page.back(u.RequestURI())
	}
	return strings.TrimSuffix(h.page.pattern(h.section.Path, ""), "{$}")
}

// do checks what was confirmed and starts it.
func (h *actHandler) do(w http.ResponseWriter, r *http.Request) {
	if refused := h.page.form(w, r); refused != nil {
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
	a := asked{Why: order.Why, Who: order.Who}
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
		status, a.Stale = http.StatusConflict, "What you saw has changed meanwhile. Nothing was done. This is how it stands now; confirm again if you still want it."
	case preview.Blocked != "":
		status = http.StatusConflict
	case order.Who == "":
		a.Missing = "Say who you are: it stands in the record."
	case order.Why == "":
		a.Missing = "Say why: it stands in the record."
	case preview.Typed != "" && strings.TrimSpace(values.Get("typed")) != preview.Typed:
		a.Missing = "Type " + preview.Typed + " to confirm."
	default:
		started := h.page.start(h.act, h.section, order)
		started.wait(r.Context(), patience)
		http.Redirect(w, r, h.page.options.Prefix+"/acts/"+started.id, http.StatusSeeOther)
		return
	}
	h.show(w, r, status, values, a)
}

// patience is how long a browser waits for an act before it is shown its progress: what is
// quick is seen done at once.
const patience = 1500 * time.Millisecond

// atOnce does it within the request.
func (h *actHandler) atOnce(w http.ResponseWriter, r *http.Request, order *Order) {
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
