package contact

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"feedbox/domain/fault"
)

// The maximum length of each field, in characters (Unicode code points).
const (
	MaxFirstName   = 100
	MaxLastName    = 100
	MaxDescription = 500
	MaxEmail       = 254 // RFC 5321 4.5.3.1.3: a path of 256 octets, less its brackets
	MaxCompanyName = 250
	MaxStreet      = 250
	MaxHouseNumber = 10
	MaxPostalCode  = 25
	MaxCity        = 250
	MaxCountry     = 250
)

// Rule is the rule of a text field. In addition, no field accepts control characters or
// bytes that are not UTF-8.
type Rule struct {
	// Field is the name of the field in requests, such as "firstName".
	Field string
	// Required fields must be present, and must not be empty or only white space.
	Required bool
	// MaxLength is in characters.
	MaxLength int
	// Email requires an address (see NewEmail), so an empty text is refused too.
	Email bool
	// Prose allows the invisible characters that join scripts and emoji. The other fields
	// refuse them (see Invisible), because otherwise two names could look the same and
	// differ, and text could be shown in another order than it is stored.
	Prose bool
}

// Rules lists the rule of every field. Value objects apply them, and the API documents are
// generated from them.
func Rules() []Rule { return slices.Clone(rules) }

var rules = []Rule{
	firstNameRule, lastNameRule, descriptionRule, emailRule,
	companyNameRule, streetRule, houseNumberRule, postalCodeRule, cityRule, countryRule,
}

var (
	firstNameRule   = Rule{Field: "firstName", Required: true, MaxLength: MaxFirstName}
	lastNameRule    = Rule{Field: "lastName", Required: true, MaxLength: MaxLastName}
	descriptionRule = Rule{Field: "description", MaxLength: MaxDescription, Prose: true}
	emailRule       = Rule{Field: "email", MaxLength: MaxEmail, Email: true}
	companyNameRule = Rule{Field: "companyName", Required: true, MaxLength: MaxCompanyName}
	streetRule      = Rule{Field: "street", MaxLength: MaxStreet}
	houseNumberRule = Rule{Field: "houseNumber", MaxLength: MaxHouseNumber}
	postalCodeRule  = Rule{Field: "postalCode", MaxLength: MaxPostalCode}
	cityRule        = Rule{Field: "city", MaxLength: MaxCity}
	countryRule     = Rule{Field: "country", MaxLength: MaxCountry}
)

// invisible are ranges (first to last) of characters that are not shown or only change the
// direction of others (Unicode Standard, chapters 23.2, 23.3 and 18.6).
var invisible = [][2]rune{
	{0x00ad, 0x00ad},
	{0x061c, 0x061c},
	{0x115f, 0x1160},
	{0x180e, 0x180e},
	{0x200b, 0x200f},
	{0x2028, 0x202e},
	{0x2060, 0x206f},
	{0x3164, 0x3164},
	{0xfeff, 0xfeff},
	{0xffa0, 0xffa0},
	{0xfff9, 0xfffb},
	{0xfffe, 0xffff},
	{0xe0000, 0xe007f},
}

// Invisible returns the ranges (first to last) of characters that only prose accepts.
func Invisible() [][2]rune { return slices.Clone(invisible) }

func isInvisible(char rune) bool {
	return char >= invisible[0][0] && slices.ContainsFunc(invisible, func(r [2]rune) bool { return r[0] <= char && char <= r[1] })
}

// breach returns the first rule that text breaks, or nil.
func (r Rule) breach(text string) []fault.Field {
	switch {
	case !utf8.ValidString(text):
		return r.fault("must be valid UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return r.fault("must not contain control characters")
	case !r.Prose && strings.ContainsFunc(text, isInvisible):
		return r.fault("must not contain invisible characters or marks of direction")
	case r.Required && strings.TrimSpace(text) == "":
		return r.fault("must not be empty")
	case utf8.RuneCountInString(text) > r.MaxLength:
		return r.fault(fmt.Sprintf("must be at most %d characters long", r.MaxLength))
	case r.Email && !isAddress(text):
		return r.fault("must be an e-mail address such as name@example.org")
	default:
		return nil
	}
}

func (r Rule) fault(message string) []fault.Field {
	return []fault.Field{{Pointer: "/" + r.Field, Message: message}}
}
