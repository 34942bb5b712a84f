package contacts

import (
	"feedbox/application/contacts"
	"feedbox/domain/contact"
	"feedbox/infrastructure/httpapi"
)

// rules holds the domain's rules by member name.
var rules = func() map[string]*httpapi.Rule {
	named := map[string]*httpapi.Rule{}
	for _, rule := range contact.Rules() {
		documented := &httpapi.Rule{MaxLength: rule.MaxLength, NotEmpty: rule.Required, Email: rule.Email}
		if !rule.Prose {
			documented.Refused = contact.Invisible()
		}
		named[rule.Field] = documented
	}
	return named
}()

func ruleOf(field string) *httpapi.Rule {
	rule, ok := rules[field]
	if !ok {
		panic("contacts: the domain has no rule for " + field) // caught by any test
	}
	return rule
}

func text(field string, into *string) httpapi.Member {
	return httpapi.Text(field, ruleOf(field), into)
}

func textOrNothing(field string, into *string) httpapi.Member {
	return httpapi.TextOrNothing(field, ruleOf(field), into)
}

func optionalText(field string, required bool, into **string) httpapi.Member {
	return httpapi.OptionalText(field, ruleOf(field), required, into)
}

// part is a member of a merge patch. Null removes a field that may be empty.
func part(field string, into *contacts.Member) httpapi.Member {
	rule := ruleOf(field)
	return httpapi.Part(field, rule, !rule.NotEmpty, (*member)(into))
}
