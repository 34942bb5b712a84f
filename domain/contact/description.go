package contact

import "feedbox/domain/fault"

// Description is free text about a contact. The zero value is no description.
type Description struct {
	text string
}

// NewDescription returns a description, or a fault for /description. Nil and the empty text
// mean no description.
func NewDescription(text *string) (Description, error) {
	if text == nil {
		return Description{}, nil
	}
	if err := fault.Fields(descriptionRule.breach(*text)...); err != nil {
		return Description{}, err
	}
	return Description{text: *text}, nil
}

// Text returns the text; empty if there is none.
func (d Description) Text() string { return d.text }

// IsNone reports whether there is no description.
func (d Description) IsNone() bool { return d.text == "" }

// String hides the text, because formatted values end up in logs.
func (d Description) String() string { return "[description]" }
