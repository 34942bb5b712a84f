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

// Config is servicebus.ClientConfig.
type Config struct {
	ConnectionString string
	Namespace        string
	Credential       azcore.TokenCredential
	Dial             func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error)
	TLS              *tls.Config
}

// Namespace is what a Config leads to: where to connect, and the tokens to show there.
// Safe for concurrent use.
type Namespace struct {
	cfg       Config
	host      string // with the port, if one is named
	emulator  bool   // no TLS
	keyName   string
	key       string
	signature string // in place of a key
}

// NewNamespace checks the configuration. It does no I/O.
func NewNamespace(cfg Config) (*Namespace, error) {
	n := &Namespace{cfg: cfg, host: cfg.Namespace}
	var err error
	switch {
	case cfg.ConnectionString == "" && cfg.Namespace == "":
		err = errors.New("give a connection string, or a namespace and a credential")
	case cfg.ConnectionString != "" && cfg.Namespace != "":
		err = errors.New("give a connection string or a namespace, not both")
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
				return errors.New("the connection string's Endpoint is no URL")
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

// connect opens a connection to speak AMQP over: by Config.Dial if that is set, else
// by TLS to port 5671, or for an emulator by TCP to port 5672, unless the host names a port.
func (n *Namespace) connect(ctx context.Context) (net.Conn, error) {
	if n.cfg.Dial != nil {
		return n.cfg.Dial(ctx, azservicebus.NewWebSocketConnArgs{Host: "wss://" + n.host + "/$servicebus/websocket"})
	}
	if n.emulator {
		return new(net.Dialer).DialContext(ctx, "tcp", n.address())
	}
	return (&tls.Dialer{Config: n.cfg.TLS}).DialContext(ctx, "tcp", n.address()) // asks for the server name of the host
}

func (n *Namespace) address() string {
	port := "5671"
	if n.emulator {
		port = "5672"
	}
	u := url.URL{Host: n.host}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// token is a proof for the broker that its holder may use an entity.
type token struct {
	audience  string // the entity, as the broker names it
	kind      string // "jwt" or "servicebus.windows.net:sastoken"
	text      string
	expiresAt time.Time // zero: a signature of the connection string, which cannot be made anew
}

const (
	sasKind = "servicebus.windows.net:sastoken"
	// sasTerm is how long a signature that is made here holds, as azservicebus has it.
	sasTerm = 2 * time.Hour
)

// token returns a token for an entity's path: of the credential, or made of the key.
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
