package page

import (
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"feedbox/infrastructure/httpapi/auth"
)

// Options configures New. The zero value of each field is the default.
type Options struct {
	// Title names the page in the header and in the browser's title; default "Feedbox".
	Title string
	// Prefix is the path that all addresses begin with, such as /operations; default none.
	// It begins with a slash and does not end with one.
	Prefix string
	// Sections appear in the navigation in this order. The start page has the Path "".
	Sections []Section
	// Links follow the sections in the navigation.
	Links []Link
	// Actions allows acts; default false: the page is read-only.
	Actions bool
	// Auth authenticates callers; default auth.Open, which admits all.
	Auth auth.Authenticator
	// AllowedHosts are host names to answer to with auth.Open, or on a loopback address, besides
	// localhost and loopback addresses; * is any. Default none.
	AllowedHosts []string
	// MaxConnections bounds the open connections, as in the options of package httpapi; half of
	// them may be live views. Default 500.
	MaxConnections int
	// MaxConnectionsPerAddress bounds those of one address; default only MaxConnections, because
	// behind a proxy all clients have one address.
	MaxConnectionsPerAddress int
	// Log receives the audit record of acts, failures, and refusals, which are sampled; default
	// none.
	Log *slog.Logger
}

// Link is an external link in the navigation.
type Link struct{ Title, URL string }

// Section is a part of the page with an entry in the navigation.
type Section struct {
	// Path is its address below the prefix, one segment; "" is the page's own address.
	Path string
	// Title is its name in the navigation.
	Title string
	// Hidden leaves it out of the navigation, because other sections lead to it.
	Hidden bool
	// Templates holds *.html files at its root.
	Templates fs.FS
	// Assets are served under /assets/ and Path ("home" for ""); default none.
	Assets fs.FS
	// Module names an asset that its views load as an ES module; default none.
	Module string
	// Style names an asset that its pages load as an additional style sheet; default none.
	Style string
	Views []View
	Acts  []Act
}

// View is an address of a section.
type View struct {
	// Path is below the section, as in patterns of http.ServeMux, such as "keys/{key}";
	// "" is the section itself.
	Path string
	// Title is the heading; default the section's title.
	Title string
	// Template names the file that renders the view.
	Template string
	// Every makes the view live: Data is called again at this pace, at least 500 ms apart.
	Every time.Duration
	// Data returns the value of .Data in the template. An error is rendered for people: a
	// *Refusal with its own text, a fault by its kind. A *Moved redirects.
	Data func(r *http.Request) (any, error)
}

// Shown is the data of a view's template.
type Shown struct {
	Data any
	// May reports whether to offer acts to the caller.
	May bool
	// Who is the caller's id; "" if authentication is off.
	Who string
	// URL is the address of the view with its query, for forms that return to it.
	URL string
}

// The scopes to read and to act.
var (
	ScopeRead  = auth.Read("operations")
	ScopeWrite = auth.Write("operations")
)

// minEvery is the least interval between two updates of a live view, because the server
// renders the view for each open tab.
const minEvery = 500 * time.Millisecond
