package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	sdkModule  = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	sdkVersion = "v1.11.0"
)

// copySDK copies the SDK's module into dir, writable.
func copySDK(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", sdkModule+"@"+sdkVersion)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	return filepath.WalkDir(module.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(module.Dir, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
}

// source is a file of the copy that is being patched. It keeps the error of the first edit
// that does not find its anchor.
type source struct {
	path, text string
	err        error
}

func edit(dir, path string) *source {
	s := &source{path: filepath.Join(dir, filepath.FromSlash(path))}
	b, err := os.ReadFile(s.path)
	s.text, s.err = string(b), err
	return s
}

func (s *source) at(anchor string) int {
	i := strings.Index(s.text, anchor)
	if i < 0 && s.err == nil {
		s.err = fmt.Errorf("%s has no %q", s.path, anchor)
	}
	return i
}

// replace replaces the first occurrence of anchor by text.
func (s *source) replace(anchor, text string) {
	if i := s.at(anchor); i >= 0 {
		s.text = s.text[:i] + text + s.text[i+len(anchor):]
	}
}

// replaceUntil replaces everything from one anchor up to another by text.
func (s *source) replaceUntil(from, to, text string) {
	i, j := s.at(from), s.at(to)
	if i >= 0 && j > i {
		s.text = s.text[:i] + text + s.text[j:]
	} else if s.err == nil {
		s.err = fmt.Errorf("%s: %q does not follow %q", s.path, to, from)
	}
}

func (s *source) save() error {
	if s.err != nil {
		return s.err
	}
	return os.WriteFile(s.path, []byte(s.text), 0o644)
}

// patch creates every client of the tests from a connection string, because the tests
// would log in to Entra ID over TLS. It also redirects the admin client's https requests
// to the HTTP port in ADMIN_HTTP.
func patch(dir string) error {
	helpers := edit(dir, "internal/test/test_helpers.go")
	helpers.replaceUntil("\tif options.UseConnectionString {", "func CreateExpiringQueue", `	cs := os.Getenv(string(EnvKeyConnectionString))
	if options.UsePremium {
		cs = os.Getenv(string(EnvKeyConnectionStringPremium))
	}
	client, err := args.NewClientFromConnectionString(cs, options.ClientOptions)
	require.NoError(t, err)
	return client
}

`)
	helpers.replace("tokenCred, err := credential.New(nil)\n\trequire.NoError(t, err)\n", "tokenCred := azcore.TokenCredential(&credential.Fake{})\n")
	helpers.replace("em, err := atom.NewEntityManager(iv.Endpoint, iv.Cred, \"\", nil)", "_ = iv\n\tem, err := atom.NewEntityManagerWithConnectionString(os.Getenv(string(EnvKeyConnectionString)), \"\", nil)")

	manager := edit(dir, "internal/atom/entity_manager.go")
	manager.replace("\tpl := runtime.NewPipeline(\"azsbadmin\"", `	if options == nil || options.Transport == nil {
		o := policy.ClientOptions{}
		if options != nil {
			o = *options
		}
		o.Transport = adminHTTP{}
		options = &o
	}

	pl := runtime.NewPipeline("azsbadmin"`)
	manager.text += `
type adminHTTP struct{}

func (adminHTTP) Do(req *http.Request) (*http.Response, error) {
	r := req.Clone(req.Context())
	u := *r.URL
	for _, pair := range strings.Fields(os.Getenv("ADMIN_HTTP")) {
		if host, port, _ := strings.Cut(pair, "="); host == u.Host {
			u.Scheme, u.Host = "http", port
		}
	}
	r.URL = &u
	return http.DefaultTransport.RoundTrip(r)
}
`
	for _, name := range []string{"os", "strings"} {
		if !strings.Contains(manager.text, "\t\""+name+"\"\n") {
			manager.replace("import (\n", "import (\n\t\""+name+"\"\n")
		}
	}

	links := edit(dir, "internal/amqpLinks_test.go")
	links.replace("iv := test.GetIdentityVars(t)\n\tns, err := NewNamespace(NamespaceWithTokenCredential(iv.Endpoint, iv.Cred))",
		"_ = test.GetIdentityVars(t)\n\tns, err := NewNamespace(NamespaceWithConnectionString(os.Getenv(\"SERVICEBUS_CONNECTION_STRING\")))")
	if !strings.Contains(links.text, "\t\"os\"\n") {
		links.replace("import (\n", "import (\n\t\"os\"\n")
	}
	for _, s := range []*source{helpers, manager, links} {
		if err := s.save(); err != nil {
			return err
		}
	}
	return nil
}
