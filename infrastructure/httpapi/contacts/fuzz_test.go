package contacts

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/query"
	"feedbox/infrastructure/httpapi"
	"feedbox/tests/fuzzseed"
)

// serverOf serves routes of contacts with an empty Read.
func serverOf(f *testing.F, routes ...httpapi.Route) http.Handler {
	f.Helper()
	read := httpapi.Read(httpapi.Operation{}, func(context.Context, query.Read) (httpapi.Found[contactView], error) {
		return httpapi.Found[contactView]{}, nil
	})
	server, err := httpapi.New([]httpapi.Resource{{Noun: "contact", Routes: append(routes, read)}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	return server.Handler()
}

// accepting returns a route that accepts a body and does nothing.
func accepting[B any, P interface {
	*B
	httpapi.Body
}](verb string,
) httpapi.Route {
	return httpapi.Change(verb, httpapi.Operation{Summary: "Take " + verb}, func(context.Context, P, command.Target) (command.Updated, error) {
		return command.Updated{}, nil
	})
}

const someContact = "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2"

// send sends a body and returns the answer.
func send(handler http.Handler, method, path, mediaType string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", mediaType)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// FuzzDecodeBody sends arbitrary bytes as each body. The domain must accept the value, or
// the answer is a refusal from 400 to 422. An accepted body is UTF-8 that encoding/json
// decodes to the same values.
func FuzzDecodeBody(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{
		`{"firstName":"Jane","lastName":"Doe","email":null,"description":"","companyName":"Contoso"}`,
		`{"firstName":"a","firstName":"b"}`, `{"email":"jane@contoso.example"}`, `{"companyName":"x","city":null}`,
		`{"description":1}`, `[]`, `{"a":{"a":{"a":{}}}}`, `{"firstName":"\ud83d\ude00"}`, "\xff", `{"firstName":" ","lastName":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	handler := serverOf(f, accepting[createBody]("create"), accepting[nameBody]("name"), accepting[descriptionBody]("description"),
		accepting[emailBody]("email"), accepting[companyBody]("company"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, verb := range []string{"create", "name", "description", "email", "company"} {
			w := send(handler, http.MethodPost, someContact+"/"+verb, "application/json", body)
			if w.Code == http.StatusNoContent {
				var standard map[string]any
				if !utf8.Valid(body) || json.Unmarshal(body, &standard) != nil {
					t.Fatalf("%s accepts %q", verb, body)
				}
				continue
			}
			if w.Code != 400 && w.Code != 413 && w.Code != 422 {
				t.Fatalf("%s answers %d to %q: %s", verb, w.Code, body, w.Body)
			}
			var problem struct{ Errors []any }
			if json.Unmarshal(w.Body.Bytes(), &problem) != nil {
				t.Fatal("the problem is not JSON")
			}
			if w.Code == 422 && len(problem.Errors) == 0 {
				t.Fatalf("%s refuses %q without a reason", verb, body)
			}
		}
	})
}

// unchecked is a patch without the rules of the domain.
type unchecked struct{ patchBody }

func (*unchecked) Check() error { return nil }

// FuzzMergePatch compares with a simple implementation of RFC 7396: an accepted patch must
// have the same effect on every member of a contact.
func FuzzMergePatch(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{
		`{}`, `{"name":{"firstName":"X"},"email":null}`, `{"company":{"city":"Bern","street":null}}`, `{"name":null}`, `[]`, `null`,
		`{"description":"","description":"x"}`, `{"id":"x"}`, `{"company":{"company":{"city":"x"}}}`, `{"name":{"email":"x"}}`,
	} {
		f.Add([]byte(seed))
	}
	const base = `{"description":"d","email":"e@f.example","name":{"firstName":"a","lastName":"b"},
		"company":{"companyName":"c","street":"s","houseNumber":"1","postalCode":"2","city":"t","country":"u"}}`
	var got *unchecked
	handler := serverOf(f, httpapi.Patch(httpapi.Operation{}, func(_ context.Context, b *unchecked, _ command.Target) (httpapi.Patched[contactView], error) {
		got = b
		return httpapi.Patched[contactView]{}, nil
	}))
	f.Fuzz(func(t *testing.T, body []byte) {
		got = nil
		w := send(handler, http.MethodPatch, someContact, "application/merge-patch+json", body)
		if w.Code == 422 {
			var problem struct{ Errors []struct{ Detail string } }
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || len(problem.Errors) == 0 {
				t.Fatalf("%q is refused without a reason: %s", body, w.Body)
			}
		}
		if got == nil {
			return
		}
		_ = got.patchBody.Check() // must not panic
		var contact, patch any
		if json.Unmarshal([]byte(base), &contact) != nil || json.Unmarshal(body, &patch) != nil {
			t.Fatalf("%q is accepted and is not JSON", body)
		}
		merged, ok := mergePatch(contact, patch).(map[string]any)
		if !ok {
			t.Fatalf("%q is accepted and removes the contact", body)
		}
		var original map[string]any
		_ = json.Unmarshal([]byte(base), &original)
		for _, one := range []struct {
			group, name string
			contacts.Member
		}{
			{"", "description", got.Description},
			{"", "email", got.Email},
			{"name", "firstName", got.FirstName},
			{"name", "lastName", got.LastName},
			{"company", "companyName", got.CompanyName},
			{"company", "street", got.Street},
			{"company", "houseNumber", got.HouseNumber},
			{"company", "postalCode", got.PostalCode},
			{"company", "city", got.City},
			{"company", "country", got.Country},
		} {
			want, have := merged, original
			if one.group != "" {
				want, _ = merged[one.group].(map[string]any)
				have, _ = original[one.group].(map[string]any)
			}
			wanted, _ := want[one.name].(string) // removed: ""
			text, _ := have[one.name].(string)
			if one.Present {
				text = ""
				if one.Text != nil {
					text = *one.Text
				}
			}
			if text != wanted {
				t.Fatalf("%q makes %s.%s %q, want %q", body, one.group, one.name, text, wanted)
			}
		}
	})
}

// mergePatch implements RFC 7396 §2.
func mergePatch(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range members {
		if value == nil {
			delete(object, name)
		} else {
			object[name] = mergePatch(object[name], value)
		}
	}
	return object
}
