package config

import (
	"fmt"
	"log/slog"
)

// masked replaces every secret that is set, so that not even its length is shown.
const masked = "********"

// Secret is a value that must not reach a log, a terminal or a file. Every
// way of printing it yields a mask; [Secret.Reveal] is the only way out.
type Secret struct{ value string }

// Reveal returns the secret itself, for the client that needs it.
func (s Secret) Reveal() string { return s.value }

// IsSet reports whether the secret is not empty.
func (s Secret) IsSet() bool { return s.value != "" }

// String returns the mask, or "" when the secret is not set.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return masked
}

// Format masks the secret for every verb, including %#v and %x.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue masks the secret for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText masks the secret for JSON and other text encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the text as the secret.
func (s *Secret) UnmarshalText(text []byte) error {
	s.value = string(text)
	return nil
}
