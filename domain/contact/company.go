package contact

import "feedbox/domain/fault"

// CompanyFields are the parts of a company as plain text. Street, HouseNumber, PostalCode,
// City and Country may be empty.
type CompanyFields struct {
	CompanyName string
	Street      string
	HouseNumber string
	PostalCode  string
	City        string
	Country     string
}

// Company is where a contact works. It is always replaced as a whole.
type Company struct {
	fields CompanyFields
}

// NewCompany returns a company, or a fault that lists every field that breaks its rule.
func NewCompany(fields CompanyFields) (Company, error) {
	var faults []fault.Field
	for _, check := range []struct {
		rule Rule
		text string
	}{
		{companyNameRule, fields.CompanyName},
		{streetRule, fields.Street},
		{houseNumberRule, fields.HouseNumber},
		{postalCodeRule, fields.PostalCode},
		{cityRule, fields.City},
		{countryRule, fields.Country},
	} {
		faults = append(faults, check.rule.breach(check.text)...)
	}
	if err := fault.Fields(faults...); err != nil {
		return Company{}, err
	}
	return Company{fields: fields}, nil
}

// Fields returns the parts.
func (c Company) Fields() CompanyFields { return c.fields }

// String hides the company, because formatted values end up in logs.
func (c Company) String() string { return "[company]" }
