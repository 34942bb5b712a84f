// Package page is the frame of pages for people: a layout, navigation, live views, and
// acts that ask before they do something. It knows nothing of what the pages show.
//
// [New] takes the sections and gives an http.Handler; [Page.Run] serves it, and Close ends
// it. The example shows a section with a live view and an act.
//
// # Sections
//
// A [Section] has an entry in the navigation, and brings templates, views and acts. Its
// templates are html/template files; each is called by its file name, and they may call
// each other. They get a [Shown]: what the view's Data returned is .Data, and .May tells
// whether acts are to be offered to this caller. Functions in templates:
//
//	path "topics/a"               an address of the page, with its prefix
//	link "topics/purge" "topic" . the same with a query: names and values in turn
//	token                         the hidden field that every form with method post needs
//	count 1234567                 a number as text, exact: 1,234,567
//	age .Time, span .Duration     in words for people; moment .Time, second .Time: the time itself;
//	old .Time                     its age, or nothing if it was a moment ago
//	spark .Points                 a small curve ([]float64) as SVG
//
// # Live views
//
// A [View] with Every is live: its content is rendered again by the server at that pace (at
// most twice a second), and sent to open tabs if it differs, over server-sent events at the
// same address. So Data of a live view must be cheap, such as a look at what one reader of
// the process keeps. Without a tab that is open and visible nothing runs. Without script
// the view shows what was true when it was loaded. The browser keeps focus, selection,
// and open <details> when content is replaced; give elements that move an id.
//
// # Acts
//
// An [Act] is reached by a link: {{link "topics/purge" "topic" .Name}}. GET shows its
// [Preview]: what would happen, a field for the reason, and a button. POST computes the
// preview again: if its Stamp differs from the one that was seen, the act is refused as
// stale. Otherwise it runs in the background as a [Job], which the browser is sent to and
// which shows progress. One line of the log is written when it begins and one when it has
// ended, with who and why. An act with AtOnce is done by a POST of a form (with token)
// without question or reason; it is for demos only.
//
// # Guards
//
// Every answer has a content security policy that allows scripts, styles and pictures of
// this origin only: no inline script, no style attribute. (Use SVG with presentation
// attributes, <meter> and <progress> for what has a size.) Every POST must come from the
// page's own origin and carry the token of this process. Reading needs the scope
// operations.read and acting operations.write, see package auth. With auth.Open, requests
// are answered only under names of this machine, so that no other site can pose as the page.
//
// Scripts are ES modules without a build step. A section's Assets are served under
// /assets/PATH/; its Module is loaded by its views.
//
// Goroutines: each job has one, and Close waits for them. A stream lives in its request
// and ends with Close.
package page
