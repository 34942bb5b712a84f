package contact

import "feedbox/domain/fault"

// Name is a person's name. Both parts are required.
type Name struct {
	first, last string
}

// NewName returns a name, or a fault that lists the parts that break their rules, /firstName
// and /lastName.
func NewName(first, last string) (Name, error) {
	faults := append(firstNameRule.breach(first), lastNameRule.breach(last)...)
	if err := fault.Fields(faults...); err != nil {
		return Name{}, err
	}
	return Name{first: first, last: last}, nil
}

// First returns the given name.
func (n Name) First() string { return n.first }

// Last returns the family name.
func (n Name) Last() string { return n.last }

// Full returns both parts with a space between them.
func (n Name) Full() string { return n.first + " " + n.last }

// String hides the name, because formatted values end up in logs.
func (n Name) String() string { return "[name]" }
