package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"feedbox/infrastructure/httpapi/internal/strictjson"
)

// FuzzDecodeBody reads arbitrary bytes as each body. Whatever comes, the
// answer is a value that the domain accepts or a refusal from 400 to 422; and
// what is accepted is UTF-8 that encoding/json reads the same.
func FuzzDecodeBody(f *testing.F) {
	for _, seed := range []string{
		`{"firstName":"Jane","lastName":"Doe","email":null,"description":"","companyName":"Contoso"}`,
		`{"firstName":"a","firstName":"b"}`, `{"email":"jane@contoso.example"}`, `{"companyName":"x","city":null}`,
		`{"description":1}`, `[]`, `{"a":{"a":{"a":{}}}}`, `{"firstName":"\ud83d\ude00"}`, "\xff", `{"firstName":" ","lastName":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	s := &Server{options: Options{MaxBody: 64 << 10}}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, b := range []shape{&createBody{}, &nameBody{}, &descriptionBody{}, &emailBody{}, &companyBody{}} {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
			r.Header.Set("Content-Type", mediaJSON)
			err := s.decode(httptest.NewRecorder(), r, b)
			if err == nil {
				var standard map[string]any
				if !utf8.Valid(body) || json.Unmarshal(body, &standard) != nil {
					t.Fatalf("%T accepts %q", b, body)
				}
				continue // the domain's check may refuse it still
			}
			p, _ := describe(r.Context(), err)
			if p.Status != 400 && p.Status != 413 && p.Status != 422 {
				t.Fatalf("%T answers %d to %q: %v", b, p.Status, body, err)
			}
			if p.Status == 422 && len(p.Errors) == 0 {
				t.Fatalf("%T refuses %q and does not say why", b, body)
			}
			if !json.Valid(mustMarshal(t, p)) {
				t.Fatal("the problem is not JSON")
			}
		}
	})
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzContinuationToken: no text but a token of this box opens, and what was
// sealed comes back.
func FuzzContinuationToken(f *testing.F) {
	box, err := newTokenBox([][]byte{bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		f.Fatal(err)
	}
	stranger, err := newTokenBox([][]byte{bytes.Repeat([]byte{2}, 32)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stranger.seal("abc", "/a"), "continuation")
	f.Add("", "")
	f.Add("AQ", `{"token":"+RID:~abc==#RT:1"}`)
	f.Fuzz(func(t *testing.T, token, continuation string) {
		if _, err := box.open(token, "/a"); err == nil {
			t.Fatalf("%q opens", token)
		}
		sealed := box.seal(continuation, "/a")
		if got, err := box.open(sealed, "/a"); err != nil || got != continuation {
			t.Fatalf("%q came back as %q, %v", continuation, got, err)
		}
		if _, err := stranger.open(sealed, "/a"); err == nil {
			t.Fatal("another key opens it")
		}
		if _, err := box.open(sealed, "/b"); err == nil {
			t.Fatal("it opens for another listing")
		}
		if len(token) > 0 {
			if got, err := box.open(sealed[:len(sealed)-1]+token, "/a"); err == nil && got != continuation {
				t.Fatalf("a changed token opens as %q", got)
			}
		}
	})
}

// FuzzEntityTags: what is accepted is a list that reads the same again, and
// every tag in it is well formed.
func FuzzEntityTags(f *testing.F) {
	for _, seed := range []string{`*`, `"a"`, `W/"a", "b",,`, `"`, `""`, "a", ` "x" `, `"a" "b"`, `*,"a"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		list, problem := parseTags(value)
		if problem != "" {
			if list.present() {
				t.Fatalf("%q is refused and read", value)
			}
			return
		}
		if !list.present() || list.any && len(list.tags) > 0 || len(list.tags) > maxEntityTags {
			t.Fatalf("%q is read as %+v", value, list)
		}
		for _, tag := range list.tags {
			if !strings.HasSuffix(tag, `"`) || !strings.HasPrefix(strings.TrimPrefix(tag, "W/"), `"`) || strings.Count(tag, `"`) != 2 {
				t.Fatalf("%q holds the tag %q", value, tag)
			}
			if !list.matchesWeak(tag) {
				t.Fatalf("%q does not match its own %q", value, tag)
			}
		}
		if again, problem := parseTags(strings.Join(list.list(), ", ")); problem != "" || len(again.tags) != len(list.tags) || again.any != list.any {
			t.Fatalf("%q is read as %+v, then as %+v", value, list, again)
		}
	})
}

// FuzzAccept: any Accept header is judged, and one that admits everything
// admits JSON.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"application/json", "*/*;q=0", "text/*;q=0.5, application/json;q=1.0", ";;", "a/b;q=x", ",,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		accepts([]string{value}, mediaJSON)
		if !accepts([]string{value + ", application/json"}, mediaJSON) && !strings.Contains(value, "json") && !strings.Contains(value, `"`) {
			t.Fatalf("%q with application/json admits no JSON", value)
		}
	})
}

// FuzzMergePatch compares with a plain implementation of RFC 7396: a patch
// that is accepted has the same effect on every member of a contact.
func FuzzMergePatch(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"name":{"firstName":"X"},"email":null}`, `{"company":{"city":"Bern","street":null}}`, `{"name":null}`, `[]`, `null`,
		`{"description":"","description":"x"}`, `{"id":"x"}`, `{"company":{"company":{"city":"x"}}}`, `{"name":{"email":"x"}}`,
	} {
		f.Add([]byte(seed))
	}
	const base = `{"description":"d","email":"e@f.example","name":{"firstName":"a","lastName":"b"},
		"company":{"companyName":"c","street":"s","houseNumber":"1","postalCode":"2","city":"t","country":"u"}}`
	f.Fuzz(func(t *testing.T, body []byte) {
		document, err := strictjson.Parse(body, maxDepth)
		if err != nil {
			return
		}
		var b patchBody
		if fields := b.fill(document); len(fields) > 0 {
			for _, field := range fields {
				if field.Message == "" {
					t.Fatalf("%q is refused and nobody knows why", body)
				}
			}
			_ = b.check() // must not panic on what was half read
			return
		}
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
		for _, group := range b.groups() {
			want, have := merged, original
			if group.name != "" {
				want, _ = merged[group.name].(map[string]any)
				have, _ = original[group.name].(map[string]any)
			}
			for _, m := range group.members {
				text, _ := want[m.name].(string) // removed: ""
				got, _ := have[m.name].(string)
				if m.into.Present {
					got = ""
					if m.into.Text != nil {
						got = *m.into.Text
					}
				}
				if got != text {
					t.Fatalf("%q makes %s.%s %q, want %q", body, group.name, m.name, got, text)
				}
			}
		}
	})
}

// mergePatch is the algorithm of RFC 7396 §2.
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

// FuzzIdempotencyKey: what is read as a key survives quoting.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"abc", `"abc"`, `"a\"b"`, `"`, "", `a"b`, "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, ok := idempotencyKey(value)
		if !ok {
			return
		}
		if key == "" {
			t.Fatalf("%q is read as the empty key", value)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		again, ok := idempotencyKey(quoted)
		printable := !strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7e })
		if ok != printable || ok && again != key {
			t.Fatalf("%q is the key %q; quoted it is %q, %v", value, key, again, ok)
		}
	})
}
