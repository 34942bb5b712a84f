package wire

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Config has the fields of servicebus.ClientConfig, which documents them.
type Config struct {
	ConnectionString string
	Namespace        string
	Credential       azcore.TokenCredential
	Dial             func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error)
	TLS              *tls.Config
}

// Namespace connects to the namespace of a Config and creates tokens for it. It is safe for concurrent
// use.
type Namespace struct {
	cfg       Config
	host      string // with the port, if the config has one
	emulator  bool   // without TLS
	keyName   string
	key       string
	signature string // replaces a key
}

// NewNamespace checks the configuration. It does no I/O.
func NewNamespace(cfg Config) (*Namespace, error) {
	n := &Namespace{cfg: cfg, host: cfg.Namespace}
	var err error
	switch {
	case cfg.ConnectionString == "" && cfg.Namespace == "":
		err = errors.New("a connection string, or a namespace and a credential, is required")
	case cfg.ConnectionString != "" && cfg.Namespace != "":
		err = errors.New("connection string and namespace exclude each other")
	case cfg.Namespace != "" && cfg.Credential == nil:
		err = errors.New("a namespace needs a credential")
	case cfg.ConnectionString != "":
		err = n.parse(cfg.ConnectionString)
	}
	if err != nil {
		return nil, fmt.Errorf("service bus client: %w", err)
	}
	return n, nil
}

// parse reads a connection string as azservicebus does (internal/conn/conn.go).
func (n *Namespace) parse(connectionString string) error {
	for part := range strings.SplitSeq(connectionString, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(name) {
		case "endpoint":
			u, err := url.Parse(value)
			if err != nil {
				return errors.New("the Endpoint of the connection string is not a URL")
			}
			n.host = u.Host
		case "sharedaccesskeyname":
			n.keyName = value
		case "sharedaccesskey":
			n.key = value
		case "sharedaccesssignature":
			n.signature = value
		case "usedevelopmentemulator":
			n.emulator, _ = strconv.ParseBool(value)
		}
	}
	switch {
	case n.host == "":
		return errors.New("the connection string has no Endpoint=sb://NAMESPACE")
	case n.signature == "" && (n.keyName == "" || n.key == ""):
		return errors.New("the connection string has neither SharedAccessKeyName and SharedAccessKey nor SharedAccessSignature")
	}
	return nil
}

// connect opens the network connection: by Config.Dial if it is set, by TCP to port 5672 for an emulator,
// and otherwise by TLS to port 5671. A port of the host replaces these.
func (n *Namespace) connect(ctx context.Context) (net.Conn, error) {
	if n.cfg.Dial != nil {
		return n.cfg.Dial(ctx, azservicebus.NewWebSocketConnArgs{Host: "wss://" + n.host + "/$servicebus/websocket"})
	}
	if n.emulator {
		return new(net.Dialer).DialContext(ctx, "tcp", n.address())
	}
	return (&tls.Dialer{Config: n.cfg.TLS}).DialContext(ctx, "tcp", n.address()) // verifies the name of the host
}

func (n *Namespace) address() string {
	port := "5671"
	if n.emulator {
		port = "5672"
	}
	u := url.URL{Host: n.host}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// token authorizes a connection to use an entity.
type token struct {
	audience  string // URI of the entity
	kind      string // "jwt" or "servicebus.windows.net:sastoken"
	text      string
	expiresAt time.Time // zero: a signature of the connection string, which cannot be refreshed
}

const (
	sasKind = "servicebus.windows.net:sastoken"
	// sasTerm is the validity of a signature. azservicebus uses the same.
	sasTerm = 2 * time.Hour
)

// token returns a token for the path of an entity, from the credential or signed with the key.
func (n *Namespace) token(ctx context.Context, entity string) (token, error) {
	t := token{audience: "amqps://" + n.host + "/" + entity, kind: sasKind, text: n.signature}
	if n.emulator {
		t.audience = "amqp://" + n.host + "/" + entity
	}
	switch {
	case n.signature != "":
	case n.key != "":
		t.expiresAt = time.Now().Add(sasTerm)
		t.text = n.sign(t.audience, t.expiresAt)
	default:
		access, err := n.cfg.Credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://servicebus.azure.net//.default"}})
		if err != nil {
			return token{}, fmt.Errorf("service bus client: get a token: %w", err)
		}
		t.kind, t.text, t.expiresAt = "jwt", access.Token, access.ExpiresOn
	}
	return t, nil
}

func (n *Namespace) sign(audience string, expires time.Time) string {
	resource, until := strings.ToLower(url.QueryEscape(audience)), strconv.FormatInt(expires.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(n.key))
	mac.Write([]byte(resource + "\n" + until))
	sum := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return "SharedAccessSignature sr=" + resource + "&sig=" + url.QueryEscape(sum) + "&se=" + until + "&skn=" + n.keyName
}
