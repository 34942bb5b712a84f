package contact

import (
	"net/mail"
	"strings"

	"feedbox/domain/fault"
)

// Email is an e-mail address. The zero value is no address.
type Email struct {
	address string
}

// NewEmail returns an address, or a fault for /email. Nil means no address; the empty text is
// a fault.
//
// The text must be a bare address (RFC 5322 3.4.1, addr-spec): no display name,
// comments, angle brackets, quoted local part or address literal. The local part
// has at most 64 octets, a domain label at most 63 (RFC 5321 4.5.3.1, RFC 1035
// 2.3.4). Letters beyond ASCII are allowed (RFC 6532). The domain is not
// looked up.
func NewEmail(address *string) (Email, error) {
	if address == nil {
		return Email{}, nil
	}
	if err := fault.Fields(emailRule.breach(*address)...); err != nil {
		return Email{}, err
	}
	return Email{address: *address}, nil
}

// Address returns the address; empty if there is none.
func (e Email) Address() string { return e.address }

// IsNone reports whether there is no address.
func (e Email) IsNone() bool { return e.address == "" }

// String hides the address, because formatted values end up in logs.
func (e Email) String() string { return "[email]" }

const (
	maxLocalPart   = 64
	maxDomainLabel = 63
)

func isAddress(text string) bool {
	parsed, err := mail.ParseAddress(text)
	// The parser drops names, comments and quotes. If the text had any, the address is not
	// the whole text.
	if err != nil || parsed.Address != text {
		return false
	}
	at := strings.LastIndexByte(text, '@')
	local, domain := text[:at], text[at+1:]
	return len(local) <= maxLocalPart && !strings.Contains(local, "@") && isDomain(domain)
}

func isDomain(domain string) bool {
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > maxDomainLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, char := range label {
			if char < 0x80 && !isLetterDigitHyphen(char) {
				return false
			}
		}
	}
	return true
}

func isLetterDigitHyphen(char rune) bool {
	return 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9' || char == '-'
}
