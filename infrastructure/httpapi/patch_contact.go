package httpapi

import (
	"net/http"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/internal/strictjson"
)

// patchBody is a merge patch (RFC 7396) of a contact's representation.
type patchBody struct{ contacts.PatchContact }

// patchGroup is an object of the representation whose members are texts. The
// root is the group without a name.
type patchGroup struct {
	name    string
	members []patchMember
}

type patchMember struct {
	name string
	into *contacts.Member
}

// groups lists what can be patched, and where it goes.
func (b *patchBody) groups() []patchGroup {
	return []patchGroup{
		{"", []patchMember{{"description", &b.Description}, {"email", &b.Email}}},
		{"name", []patchMember{{"firstName", &b.FirstName}, {"lastName", &b.LastName}}},
		{"company", []patchMember{
			{"companyName", &b.CompanyName},
			{"street", &b.Street},
			{"houseNumber", &b.HouseNumber},
			{"postalCode", &b.PostalCode},
			{"city", &b.City},
			{"country", &b.Country},
		}},
	}
}

// patchContact answers 200 with the contact after the change. Several changes
// are one commit, with one event for each kind of change.
func (s *Server) patchContact(w http.ResponseWriter, r *http.Request) error {
	id, err := contactID(r)
	if err != nil {
		return err
	}
	document, err := s.readJSON(w, r, mediaMergePatch)
	if err != nil {
		return err
	}
	var b patchBody
	if err := fault.Fields(withBreaches(b.fill(document), b.check())...); err != nil {
		return err
	}
	if b.Target, err = s.target(r, id); err != nil {
		return err
	}
	patched, err := mediator.Send(r.Context(), s.mediator, b.PatchContact)
	if err != nil {
		return err
	}
	setState(w.Header(), patched.ETag, patched.SessionToken)
	setReplayed(w.Header(), patched.Replayed)
	writeJSON(w, http.StatusOK, mediaJSON, viewOf(patched.Contact))
	return nil
}

// fill takes the members of the patch and returns what does not fit.
func (b *patchBody) fill(document *strictjson.Document) []fault.Field {
	if document.Root.Kind != strictjson.Object {
		return []fault.Field{{Pointer: "", Message: "must be an object, not " + document.Root.Kind.String()}}
	}
	p := patchReader{groups: b.groups(), duplicate: map[string]bool{}}
	for _, pointer := range document.Duplicates {
		p.duplicate[pointer] = true
		p.refuse(pointer, "must not be named twice")
	}
	p.object("", document.Root, p.groups[0])
	return p.fields
}

type patchReader struct {
	groups    []patchGroup
	duplicate map[string]bool
	fields    []fault.Field
}

func (p *patchReader) refuse(pointer, message string) {
	p.fields = append(p.fields, fault.Field{Pointer: pointer, Message: message})
}

func (p *patchReader) object(pointer string, value strictjson.Value, group patchGroup) {
	for _, got := range value.Members {
		at := strictjson.Pointer(pointer, got.Name)
		if p.duplicate[at] {
			continue // reported already
		}
		if into := group.member(got.Name); into != nil {
			p.text(at, got.Value, into)
			continue
		}
		inner, ok := p.group(pointer, got.Name)
		switch {
		case !ok:
			p.refuse(at, "is not a member that can be changed")
		case got.Value.Kind != strictjson.Object:
			p.refuse(at, "must be an object, not "+got.Value.Kind.String())
		default:
			p.object(at, got.Value, inner)
		}
	}
}

// group finds a group by its name. Groups are members of the root only.
func (p *patchReader) group(pointer, name string) (patchGroup, bool) {
	for _, group := range p.groups[1:] {
		if pointer == "" && group.name == name {
			return group, true
		}
	}
	return patchGroup{}, false
}

func (p *patchReader) text(at string, value strictjson.Value, into *contacts.Member) {
	switch value.Kind {
	case strictjson.String:
		*into = contacts.Member{Present: true, Text: &value.Text}
	case strictjson.Null:
		*into = contacts.Member{Present: true}
	case strictjson.Bool, strictjson.Number, strictjson.Array, strictjson.Object:
		p.refuse(at, "must be a string or null, not "+value.Kind.String())
	}
}

func (g patchGroup) member(name string) *contacts.Member {
	for _, m := range g.members {
		if m.name == name {
			return m.into
		}
	}
	return nil
}

// check applies the domain's rules to what was read, to report it beside
// faults of structure. What is absent is in order.
func (b *patchBody) check() error {
	const fine = "x"
	or := func(m contacts.Member, absent string) string {
		switch {
		case !m.Present:
			return absent
		case m.Text == nil:
			return ""
		default:
			return *m.Text
		}
	}
	_, name := contact.NewName(or(b.FirstName, fine), or(b.LastName, fine))
	_, email := contact.NewEmail(b.Email.Text)
	_, description := contact.NewDescription(b.Description.Text)
	_, company := contact.NewCompany(contact.CompanyFields{
		CompanyName: or(b.CompanyName, fine),
		Street:      or(b.Street, ""),
		HouseNumber: or(b.HouseNumber, ""),
		PostalCode:  or(b.PostalCode, ""),
		City:        or(b.City, ""),
		Country:     or(b.Country, ""),
	})
	return fault.Merge(fault.At("/name", name), description, email, fault.At("/company", company))
}
