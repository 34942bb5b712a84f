package httpapi

import (
	"html"
	"net/http"
	"strings"

	"github.com/swaggest/swgui/v5emb"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/limit"
)

const pathDocs = "/docs"

// docsPage shows the OpenAPI document with Swagger UI. All assets are embedded, so it works
// offline; the policy forbids assets and scripts of other origins.
const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="` + pathDocs + `/swagger-ui.css">
<link rel="icon" type="image/png" href="` + pathDocs + `/favicon-32x32.png">
</head>
<body>
<div id="ui"></div>
<script src="` + pathDocs + `/swagger-ui-bundle.js"></script>
<script src="` + pathDocs + `/start.js"></script>
</body>
</html>
`

const docsScript = `SwaggerUIBundle({ url: "` + pathOpenAPI + `", dom_id: "#ui", deepLinking: true, validatorUrl: null });
`

// docsPolicy allows inline styles and data URLs, because Swagger UI sets styles from its
// script and has its icons in data URLs.
const docsPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"

// docs returns the handlers of the documentation page by path.
func docs(title string) map[string]http.Handler {
	assets := v5emb.New("", pathOpenAPI, pathDocs)
	handlers := map[string]http.Handler{
		pathDocs:               docsText("text/html; charset=utf-8", strings.ReplaceAll(docsPage, "{title}", html.EscapeString(title))),
		pathDocs + "/start.js": docsText("text/javascript; charset=utf-8", docsScript),
	}
	for _, name := range []string{"swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"} {
		handlers[pathDocs+"/"+name] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=86400")
			assets.ServeHTTP(w, r)
		})
	}
	return handlers
}

func docsText(contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Security-Policy", docsPolicy)
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = strings.NewReader(text).WriteTo(w)
	})
}

// readOnly serves a document to GET and HEAD. Documents need no credential, so they have a rate
// per address.
func (s *Server) readOnly(path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stateOf(r.Context()).route = path
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.turnAway(w, r, methodNotAllowed("GET, HEAD"))
			return
		}
		if _, open := s.options.Auth.(auth.Open); !open { // for a rate of its own, apart from that of refusals
			if err := s.take("documents " + limit.AddressOf(r.RemoteAddr)); err != nil {
				fail(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
