package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"
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

// fileSuffix ends the name of the variable that names the file with a secret.
const fileSuffix = "_FILE"

// maxSecretFile bounds what is read of a file that is named by mistake.
const maxSecretFile = 64 << 10

// readFiles adds to given the secrets whose file is named, and returns their variables. A line break
// at the end of a file is not part of the secret, because most editors and tools add one.
func readFiles(report *report, variables []Variable, given map[string]string) map[string]bool {
	read := map[string]bool{}
	for _, v := range variables {
		name := v.Name + fileSuffix
		path, set := given[name]
		if !v.Secret || !set {
			continue
		}
		report.order[name] = report.order[v.Name]
		if _, both := given[v.Name]; both {
			report.add(name, "and "+v.Name+" are both set", "keep the one that is meant")
			continue
		}
		content, err := readFile(path)
		secret := strings.TrimRight(string(content), "\r\n")
		switch {
		case err != nil:
			report.add(name, "cannot be read: "+err.Error(), "name a file that the user of this process may read")
		case len(content) > maxSecretFile:
			report.add(name, "names a file of more than 64 KB", "name the file that holds only the secret")
		case secret == "":
			report.add(name, "names an empty file", "write the secret into it, or remove the variable")
		default:
			given[v.Name], read[v.Name] = secret, true
		}
	}
	return read
}

// Password returns the current password for new connections, from PasswordFile or PasswordCommand.
func (p Postgres) Password(ctx context.Context) (string, error) {
	var content []byte
	var err error
	source := "FEEDBOX_POSTGRES_PASSWORD_FILE"
	if p.PasswordFile != "" {
		content, err = readFile(p.PasswordFile)
	} else {
		source = "FEEDBOX_POSTGRES_PASSWORD_COMMAND"
		words := strings.Fields(p.PasswordCommand)
		if len(words) == 0 {
			return "", errors.New(source + " names no program")
		}
		command := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the operator's own program
		command.WaitDelay = time.Second                             // its children may keep its output open
		content, err = command.Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %.300q", err, strings.TrimSpace(string(failed.Stderr)))
		}
	}
	password := strings.TrimRight(string(content), "\r\n")
	if err == nil && (password == "" || len(content) > maxSecretFile) {
		err = fmt.Errorf("%d bytes are not a password", len(content))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	return password, nil
}

// readFile reads up to one byte more than a secret may have.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	return content, errors.Join(err, file.Close())
}
