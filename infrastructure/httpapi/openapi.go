package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"feedbox/infrastructure/httpapi/auth"
)

const pathOpenAPI = "/openapi.json"

// commonProblems lists the statuses that any route may answer.
var commonProblems = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// openAPI builds the OpenAPI 3.1 document of the routes, for the options of the server.
func openAPI(s *Server, routes []route) ([]byte, error) {
	o, all := &s.options, wordsOf(s.collections)
	schemas := object{"Problem": schemaOfView(reflect.TypeFor[problem](), words{})}
	for _, c := range s.collections {
		if slices.ContainsFunc(c.Routes, func(r Route) bool { return r.audit }) {
			schemas[auditPage] = schemaOfView(reflect.TypeFor[auditView](), all) // also if Options.Audit is not set
		}
	}
	paths := object{}
	for _, one := range routes {
		item, ok := paths[one.path].(object)
		if !ok {
			item = object{}
			paths[one.path] = item
		}
		if one.doc.body != nil {
			schemas[one.doc.body.name] = one.doc.body.schema
		}
		for _, reply := range one.doc.replies {
			if reply.view != nil {
				schemas[reply.view.name] = schemaOfView(reply.view.of, reply.view.words)
			}
		}
		item[strings.ToLower(one.method)] = operationObject(one, o)
	}
	tags := make([]object, len(s.collections))
	for i, c := range s.collections {
		tags[i] = object{"name": c.Plural, "description": c.Description}
	}
	components := object{"schemas": schemas, "parameters": parameterDocs(o.RequirePrecondition, all), "headers": headerDocs(all), "responses": problemResponses(s.collections)}
	if schemes := securitySchemes(o.Auth.Challenge(), s.collections); len(schemes) > 0 {
		components["securitySchemes"] = schemes
	}
	document, err := json.MarshalIndent(object{
		"openapi":    "3.1.0",
		"info":       object{"title": o.Title, "version": "1", "description": o.Description},
		"servers":    []object{{"url": cmp.Or(o.PublicURL, "/")}},
		"tags":       tags,
		"paths":      paths,
		"components": components,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	return document, nil
}

func serveOpenAPI(document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaJSON)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Length", strconv.Itoa(len(document)))
		_, _ = w.Write(document)
	}
}

func operationObject(one route, o *Options) object {
	doc := one.doc
	out := object{"operationId": doc.id, "summary": doc.summary, "tags": []string{one.collection.Plural}}
	if doc.description != "" {
		out["description"] = doc.description
	}
	names := append([]string(nil), doc.parameters...)
	if strings.Contains(one.path, "{id}") {
		names = append([]string{"id"}, names...)
	}
	names = append(names, headerClientRequest, "traceparent")
	parameters := make([]object, len(names))
	for i, name := range names {
		parameters[i] = object{"$ref": "#/components/parameters/" + name}
	}
	out["parameters"] = parameters
	if doc.body != nil {
		out["requestBody"] = object{"required": true, "content": object{
			doc.body.mediaType: object{"schema": object{"$ref": "#/components/schemas/" + doc.body.name}},
		}}
	}
	out["responses"] = responsesObject(one, o)
	if o.Auth.Challenge() != "" {
		out["security"] = []object{{"caller": []string{one.scope.Name}}}
	}
	return out
}

func responsesObject(one route, o *Options) object {
	responses := object{}
	for _, reply := range one.doc.replies {
		response := object{"description": reply.description}
		headers := object{headerRequest: object{"$ref": "#/components/headers/" + headerRequest}}
		for _, name := range reply.headers {
			headers[name] = object{"$ref": "#/components/headers/" + name}
		}
		response["headers"] = headers
		if reply.view != nil {
			response["content"] = object{mediaJSON: object{"schema": object{"$ref": "#/components/schemas/" + reply.view.name}}}
		}
		responses[strconv.Itoa(reply.status)] = response
	}
	problems := slices.Concat(one.doc.problems, commonProblems)
	if one.mediaType() != "" {
		problems = append(problems, http.StatusNotAcceptable)
	}
	if o.RequirePrecondition && slices.Contains(one.doc.parameters, requiredIfMatch) {
		problems = append(problems, http.StatusPreconditionRequired)
	}
	for _, status := range problems {
		responses[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + strconv.Itoa(status)}
	}
	return responses
}

func securitySchemes(challenge string, resources []*collection) object {
	switch challenge {
	case (&auth.Entra{}).Challenge():
		var scopes []string
		for _, c := range resources {
			scopes = append(scopes, auth.Read(c.Plural).Name, auth.Write(c.Plural).Name)
			if c.options.Audit {
				scopes = append(scopes, auth.Audit(c.Plural).Name)
			}
		}
		return object{"caller": object{"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "Access token of the configured issuer: for a delegated user with the scope " + listed(scopes, "or") + ", for an application with the role of that name."}}
	case (&auth.APIKeys{}).Challenge():
		return object{"caller": object{"type": "apiKey", "in": "header", "name": auth.HeaderAPIKey}}
	default:
		return nil
	}
}

// problemDocs describes the statuses from 400 upwards for all resources.
var problemDocs = map[int]string{
	http.StatusBadRequest:            "The request is malformed: its JSON, a precondition, the query or a token.",
	http.StatusUnauthorized:          "A valid credential is required.",
	http.StatusForbidden:             "The caller lacks the permission.",
	http.StatusNotFound:              "There is no such {noun}, or it was deleted.",
	http.StatusNotAcceptable:         "The Accept header excludes the media type of the answer.",
	http.StatusConflict:              "The id belongs to an existing {noun}.",
	http.StatusGone:                  "The {noun} was deleted.",
	http.StatusPreconditionFailed:    "The {noun} is not in the state that the precondition requires. A repeat with the same Idempotency-Key is answered as a replay, regardless of its preconditions.",
	http.StatusRequestEntityTooLarge: "The body, or the data to be stored, is too large.",
	http.StatusUnsupportedMediaType:  "The media type, charset or content coding of the body is not supported.",
	http.StatusUnprocessableEntity:   "The content breaks the rules listed in errors, or (code idempotency_key_reused) the Idempotency-Key was used for another request.",
	http.StatusPreconditionRequired:  "If-Match is required.",
	http.StatusTooManyRequests:       "The rate limit of the caller or of the service is exceeded; wait for Retry-After.",
	http.StatusInternalServerError:   "An unexpected error occurred.",
	http.StatusServiceUnavailable:    "The service is unavailable; try again after Retry-After. With the code outcome_unknown, timeout or client_closed a change may have been made.",
}

func problemResponses(resources []*collection) object {
	out := object{}
	for status, description := range problemDocs {
		description = wordsOf(resources).say(description)
		for _, c := range resources {
			if more := c.Problems[status]; more != "" {
				description += " " + more
			}
		}
		headers := object{}
		for _, name := range []string{headerRequest, headerErrorCode} {
			headers[name] = object{"$ref": "#/components/headers/" + name}
		}
		switch status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			headers["Retry-After"] = object{"$ref": "#/components/headers/Retry-After"}
		case http.StatusUnsupportedMediaType:
			for _, name := range []string{"Accept-Encoding", "Accept-Post", "Accept-Patch"} {
				headers[name] = object{"$ref": "#/components/headers/" + name}
			}
		case http.StatusUnauthorized:
			headers["WWW-Authenticate"] = object{"$ref": "#/components/headers/WWW-Authenticate"}
		}
		out[strconv.Itoa(status)] = object{
			"description": description, "headers": headers,
			"content": object{mediaProblem: object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
		}
	}
	return out
}

// headerDocs returns the headers that answers refer to by name.
func headerDocs(w words) object {
	out := object{}
	for name, description := range map[string]string{
		"ETag":             "state of the {noun} after this request, for If-Match and If-None-Match; absent from a replay if another request has changed the {noun} since",
		"Location":         "address of the {noun}",
		headerReplayed:     "true if an earlier request with the same key was answered",
		headerSession:      "session token; send it with later requests to read your own writes",
		headerContinuation: "continuation token of the next page; absent on the last",
		headerRequest:      "id of the request, for support",
		headerErrorCode:    "the problem's code",
		"Retry-After":      "seconds to wait",
		"Accept-Encoding":  "supported content codings",
		"Accept-Post":      "supported media types",
		"Accept-Patch":     "supported media types",
		"WWW-Authenticate": "how to authenticate",
	} {
		out[name] = object{"description": w.say(description), "schema": object{"type": "string"}}
	}
	return out
}
