package main

import (
	"bytes"
	"html/template"
	"net/http"
)

// homePage leads to everything that answers a browser.
var homePage = template.Must(template.New("home").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>feedbox-dev</title></head>
<body>
<h1>feedbox-dev</h1>
<ul>
<li><a href="/docs">the contacts API, described</a> (<a href="/openapi.json">OpenAPI</a>)</li>
<li><a href="/api/contacts">all contacts</a></li>
<li><a href="{{.Ops}}/readyz">is it ready</a>, <a href="{{.Ops}}/metrics">metrics</a></li>
<li><a href="{{.ServiceBusAdmin}}/health">Service Bus emulator</a></li>
<li>Cosmos DB emulator: {{.CosmosEndpoint}}</li>
</ul>
<p>In a shell: <code>eval "$(feedbox-dev env)"</code>, then <code>feedbox lag</code>.</p>
</body>
</html>
`))

// home serves the page.
func home(e endpoints) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		if err := homePage.Execute(&page, e); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(page.Bytes()) // the reader has gone away
	})
}
