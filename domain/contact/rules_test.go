package contact_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/tests/fuzzseed"
)

// set tries a text as the value of one field and returns the fault.
var set = map[string]func(text string) error{
	"firstName":   func(s string) error { _, err := contact.NewName(s, "Doe"); return err },
	"lastName":    func(s string) error { _, err := contact.NewName("John", s); return err },
	"description": func(s string) error { _, err := contact.NewDescription(&s); return err },
	"email":       func(s string) error { _, err := contact.NewEmail(&s); return err },
	"companyName": company(func(f *contact.CompanyFields, s string) { f.CompanyName = s }),
	"street":      company(func(f *contact.CompanyFields, s string) { f.Street = s }),
	"houseNumber": company(func(f *contact.CompanyFields, s string) { f.HouseNumber = s }),
	"postalCode":  company(func(f *contact.CompanyFields, s string) { f.PostalCode = s }),
	"city":        company(func(f *contact.CompanyFields, s string) { f.City = s }),
	"country":     company(func(f *contact.CompanyFields, s string) { f.Country = s }),
}

func company(assign func(*contact.CompanyFields, string)) func(string) error {
	return func(text string) error {
		fields := contact.CompanyFields{CompanyName: "Contoso"}
		assign(&fields, text)
		_, err := contact.NewCompany(fields)
		return err
	}
}

// faults returns the fields of a validation fault as "pointer message" lines.
func faults(err error) []string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	var lines []string
	for _, field := range f.Fields {
		lines = append(lines, field.Pointer+" "+field.Message)
	}
	return lines
}

// Every field follows its rule, at the limit and one character beyond it.
func TestEveryFieldFollowsItsRule(t *testing.T) {
	t.Parallel()
	if len(contact.Rules()) != len(set) {
		t.Fatalf("%d rules, the test knows %d fields", len(contact.Rules()), len(set))
	}
	for _, rule := range contact.Rules() {
		try, ok := set[rule.Field]
		if !ok {
			t.Fatalf("the test does not know the field %s", rule.Field)
		}
		wide := strings.Repeat("é", rule.MaxLength) // two bytes each
		if rule.Email {
			wide = strings.Repeat("é", 32) + "@" + strings.Repeat("aaaaaaaaa.", 22) + "a"
			wide += strings.Repeat("a", rule.MaxLength-utf8.RuneCountInString(wide))
		}
		accepted := map[string]string{"at the limit": wide}
		refused := map[string]string{
			"one beyond the limit": wide + "a",
			"control character":    "a\x00b",
			"line feed":            "a\nb",
			"delete":               "a\u007fb",
			"C1 control":           "a\u0085b",
			"not UTF-8":            "a\xffb",
			"half a character":     "a\xc3",
		}
		for kind, text := range map[string]string{
			"zero width space": "a\u200bb", "zero width joiner": "a\u200db", "byte order mark": "\ufeffab", "soft hyphen": "a\u00adb",
			"right-to-left override": "a\u202eb", "right-to-left mark": "a\u200fb", "isolate": "\u2066ab\u2069", "Arabic letter mark": "a\u061cb",
			"Hangul filler": "\u3164", "tag": "a\U000e0041b", "line separator": "a\u2028b", "noncharacter": "a\ufffeb",
		} {
			if rule.Prose {
				accepted[kind] = text
			} else {
				refused[kind] = text
			}
		}
		for kind, text := range map[string]string{"empty": "", "blank": " \u00a0 "} {
			if rule.Required || rule.Email {
				refused[kind] = text
			} else {
				accepted[kind] = text
			}
		}
		for kind, text := range accepted {
			if err := try(text); err != nil {
				t.Errorf("%s, %s: %v; want it accepted", rule.Field, kind, err)
			}
		}
		for kind, text := range refused {
			lines := faults(try(text))
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "/"+rule.Field+" must") {
				t.Errorf("%s, %s: faults %q; want one on /%s", rule.Field, kind, lines, rule.Field)
			}
		}
	}
}

func TestRulesHaveDocumentedLimits(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, r := range contact.Rules() {
		got[r.Field] = fmt.Sprint(r.Required, r.MaxLength)
		if r.Prose != (r.Field == "description") {
			t.Errorf("%s is prose: %t", r.Field, r.Prose)
		}
	}
	want := map[string]string{
		"firstName": "true 100", "lastName": "true 100", "description": "false 500", "email": "false 254",
		"companyName": "true 250", "street": "false 250", "houseNumber": "false 10", "postalCode": "false 25",
		"city": "false 250", "country": "false 250",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestEmailAcceptsOnlyBareAddresses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	accepted := []string{
		"johndoe@contoso.com", "a@b", "first.last+tag@sub.example.org", "o'brien@example.ie",
		"!#$%&'*+-/=?^_`{|}~@example.org", "jörg@müller.example", long + "@example.org", "1@2.3",
	}
	refused := []string{
		"", " ", "@", "a@", "@b", "a", "a@b@c", "a b@c", "a@b c", " a@b", "a@b ", "a..b@c", ".a@c", "a.@c",
		"John <a@b>", "<a@b>", "a@b (comment)", `"a b"@c`, "a@b,c@d", "a@.b", "a@b.", "a@b..c", "a@-b", "a@b-",
		"a@b_c", "a@[127.0.0.1]", long + "a@example.org", "a@" + long + ".org", "mailto:a@b", "a@b\r\nX: y",
	}
	for _, text := range accepted {
		if email, err := contact.NewEmail(&text); err != nil || email.Address() != text {
			t.Errorf("%q: %q, %v; want it accepted as it is", text, email.Address(), err)
		}
	}
	for _, text := range refused {
		if _, err := contact.NewEmail(&text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v; want it refused", text, err)
		}
	}
}

func TestNilEmailAndDescriptionAreNone(t *testing.T) {
	t.Parallel()
	email, err := contact.NewEmail(nil)
	if err != nil || !email.IsNone() {
		t.Errorf("e-mail from nil: %v, none %t", err, email.IsNone())
	}
	empty := ""
	for _, text := range []*string{nil, &empty} {
		description, err := contact.NewDescription(text)
		if err != nil || !description.IsNone() {
			t.Errorf("description from %v: %v, none %t", text, err, description.IsNone())
		}
	}
}

// Values are formatted in log lines, which must hold no personal data.
func TestFormattingHidesPersonalData(t *testing.T) {
	t.Parallel()
	const secret = "Xerxes"
	address := secret + "@example.org"
	text := secret
	n, _ := contact.NewName(secret, secret)
	e, _ := contact.NewEmail(&address)
	d, _ := contact.NewDescription(&text)
	f, _ := contact.NewCompany(contact.CompanyFields{CompanyName: secret})
	c, err := contact.New(exampleID, contact.Details{Name: n, Email: e, Description: d, Company: f}, exampleID, start)
	if err != nil {
		t.Fatal(err)
	}
	_, broken := contact.NewName(secret+"\x00", strings.Repeat(secret, 50))
	for _, value := range []any{n, e, d, f, c, c.State(), broken} {
		for _, verb := range []string{"%v", "%+v", "%s", "%q"} {
			if shown := fmt.Sprintf(verb, value); strings.Contains(shown, secret) {
				t.Errorf("%T with %s shows %s", value, verb, shown)
			}
		}
	}
}

func FuzzFields(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{"", "John", "a@b", "a\x00", "\xff", "é@é.é", `"x"@y`, "a@[::1]", strings.Repeat("x", 600)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, rule := range contact.Rules() {
			err := set[rule.Field](text)
			if err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v is not a validation fault", rule.Field, err)
			}
			if err == nil && (!utf8.ValidString(text) || utf8.RuneCountInString(text) > rule.MaxLength) {
				t.Errorf("%s: accepts %q", rule.Field, text)
			}
			if err == nil && rule.Email && strings.Count(text, "@") != 1 {
				t.Errorf("%s: accepts %q", rule.Field, text)
			}
		}
	})
}
