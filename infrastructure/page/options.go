package page

import (
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"feedbox/infrastructure/httpapi/auth"
)

// Options are the choices of New. The zero value of each field is the default.
type Options struct {
	// Title names the page in the header and in the browser's title; default "Feedbox".
	Title string
	// Prefix is the path that all addresses begin with, such as /operations; default none.
	// It begins with a slash and does not end with one.
	Prefix string
	// Sections stand in the navigation in this order. That with the Path "" is the first seen.
	Sections []Section
	// Links follow in the navigation.
	Links []Link
	// Actions allows acts; default false: the page only shows.
	Actions bool
	// Auth finds out who calls; default auth.Open, everybody.
	Auth auth.Authenticator
	// AnyHost answers under any host name also with auth.Open. Default false: only under
	// names of this machine.
	AnyHost bool
	// Log receives the record of acts, and failures; default none.
	Log *slog.Logger
}

// Link leads out of the page.
type Link struct{ Title, URL string }

// Section is a part of the page with an entry in the navigation.
type Section struct {
	// Path is its address below the prefix, one segment; "" is the page's own address.
	Path string
	// Title is its name in the navigation.
	Title string
	// Templates holds *.html files at its root.
	Templates fs.FS
	// Assets are served under /assets/ and Path ("home" for ""); default none.
	Assets fs.FS
	// Module is the name of the asset that its views load as an ES module; default none.
	Module string
	// Style is the name of the asset that its pages load as a further style sheet; default
	// none.
	Style string
	Views []View
	Acts  []Act
}

// View is an address of a section.
type View struct {
	// Path is below the section, as in patterns of http.ServeMux, such as "keys/{key}";
	// "" is the section itself.
	Path string
	// Title is a heading of its own; default that of the section.
	Title string
	// Template is the file that renders it.
	Template string
	// Every makes it live: the pace at which Data is asked again; at least 500 ms.
	Every time.Duration
	// Data returns what the template shows as .Data. An error is shown in words: a
	// *Refusal as it says, a fault of package fault by its kind. A *Moved leads elsewhere.
	Data func(r *http.Request) (any, error)
}

// Shown is what templates of views get.
type Shown struct {
	Data any
	// May tells whether acts are to be offered to the caller.
	May bool
	// Who is the caller, "" for everybody.
	Who string
	// URL is the address of the view with its query, for forms that come back.
	URL string
}

// The scopes: to look, and to act.
var (
	ScopeRead  = auth.Read("operations")
	ScopeWrite = auth.Write("operations")
)

// minEvery is the shortest time between two updates of a live view.
const minEvery = 500 * time.Millisecond
