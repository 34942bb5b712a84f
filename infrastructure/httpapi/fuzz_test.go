package httpapi

import (
	"bytes"
	"strings"
	"testing"

	"feedbox/tests/fuzzseed"
)

// FuzzContinuationToken checks that only tokens of this box open, and that a sealed
// continuation is returned unchanged.
func FuzzContinuationToken(f *testing.F) {
	box, err := newTokenBox([][]byte{bytes.Repeat([]byte{1}, 32)}, "things")
	if err != nil {
		f.Fatal(err)
	}
	stranger, err := newTokenBox([][]byte{bytes.Repeat([]byte{2}, 32)}, "things")
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

// FuzzEntityTags checks that an accepted list is stable when parsed again, and that its tags
// are well formed.
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

// FuzzAccept checks that no Accept header panics, and that one with application/json added
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

// FuzzIdempotencyKey checks that a key and its quoted form are the same.
func FuzzIdempotencyKey(f *testing.F) {
	fuzzseed.Add(f)
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
