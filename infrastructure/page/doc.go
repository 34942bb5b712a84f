// Package page provides the frame of a web page for operators: layout, navigation, live
// views, and acts that show a preview before they run. It does not depend on the content.
//
// [New] takes the sections and returns an http.Handler; [Page.Run] serves it, and Close
// ends it. The example shows a section with a live view and an act.
//
// # Sections
//
// A [Section] has an entry in the navigation, and brings templates, views and acts. Its
// templates are html/template files; each is called by its file name, and they may call
// each other. They get a [Shown]: .Data is the result of the view's Data, and .May reports
// whether to offer acts to this caller. Functions in templates:
//
//	path "topics/a"               an address of the page, with its prefix
//	link "topics/purge" "topic" . the same with a query: names and values in turn
//	token                         the hidden field that every form with method post needs
//	count 1234567                 an exact number with separators: 1,234,567
//	age .Time, span .Duration     in words; moment .Time, second .Time: the time itself;
//	spark .Points                 a small curve ([]float64) as SVG
//
// # Live views
//
// A [View] with Every is live: the server renders its content again at that pace (at most
// twice a second), and sends changed content to open tabs, as server-sent events from the
// same address. So Data of a live view must be cheap, such as a copy of state that one
// reader of the process maintains. Nothing runs unless a tab is open and visible. Without
// script the view shows the state at loading time. When content is replaced, the browser
// keeps focus, selection, and open <details>; give elements that move an id.
//
// # Acts
//
// An [Act] is reached by a link: {{link "topics/purge" "topic" .Name}}. GET shows its
// [Preview]: the effect, a field for the reason, and a button. POST computes the preview
// again: if its Stamp differs from the one that the person saw, the act is refused as
// stale. Otherwise it runs in the background as a [Job], and the browser is redirected to
// the job, which shows progress. The log gets one line when an act starts and one when it
// ends, with name and reason. An act with AtOnce runs on POST of a form (with token) without
// preview or reason; it is for demos only.
//
// # Guards
//
// Every answer has a content security policy that allows scripts, styles and pictures of
// this origin only: no inline script, no style attribute. (Use SVG with presentation
// attributes, <meter> and <progress> for sizes that depend on data.) Every POST must come
// from the page's own origin and carry the token of its session. Reading needs the scope
// operations.read and acting operations.write, see package auth. With auth.Open, or on
// a loopback address, the page serves only known hosts, see package hostguard.
//
// Scripts are ES modules without a build step. A section's Assets are served under
// /assets/PATH/; its Module is loaded by its views.
//
// # Limits
//
// [Page.Run] bounds connections, writes and buffers, see package limit. Half of the connections
// may be live views, and a reader may have as many of them as are free. The reader of a live view
// is judged again each minute, and a sign-out ends those of its session. Wrong credentials have
// a rate per address. 16 acts may run at once, and a person may run as many of them as are free. Refusals are
// logged, sampled.
//
// Goroutines: each job has one, and Close waits for them. A stream runs in its request and
// ends with Close.
package page
