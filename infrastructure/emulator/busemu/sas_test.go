package busemu

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"feedbox/tests/fuzzseed"

	goamqp "github.com/Azure/go-amqp"
)

// sign makes a token as the SDKs do, for the default key.
func sign(t *testing.T, resource string, expires time.Time) string {
	t.Helper()
	return signWith(resource, expires, DefaultKeyName, DefaultKey)
}

func signWith(resource string, expires time.Time, name, key string) string {
	sr := strings.ToLower(url.QueryEscape(resource))
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%s\n%d", sr, expires.Unix())
	sig := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s", sr, sig, expires.Unix(), name)
}

// putToken sends a token to $cbs and fails the test if it is refused.
func putToken(ctx context.Context, t *testing.T, session *goamqp.Session, audience, token string) {
	t.Helper()
	if status := cbs(ctx, t, session, audience, token); status != 200 {
		t.Fatalf("put-token: status %d", status)
	}
}

func cbs(ctx context.Context, t *testing.T, session *goamqp.Session, audience, token string) int32 {
	t.Helper()
	sender := must(session.NewSender(ctx, "$cbs", nil))(t)
	receiver := must(session.NewReceiver(ctx, "$cbs", &goamqp.ReceiverOptions{TargetAddress: "me"}))(t)
	check(t, sender.Send(ctx, &goamqp.Message{
		Value: token, Properties: &goamqp.MessageProperties{MessageID: "1", ReplyTo: ptr("me")},
		ApplicationProperties: map[string]any{"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": audience},
	}, nil))
	reply := must(receiver.Receive(ctx, nil))(t)
	if reply.Properties.CorrelationID != "1" {
		t.Errorf("correlation-id %v", reply.Properties.CorrelationID)
	}
	check(t, sender.Close(ctx))
	check(t, receiver.Close(ctx))
	return reply.ApplicationProperties["status-code"].(int32)
}

func TestVerifyToken(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	keys := keyring{{Name: "root", Key: "secret", Rights: allRights}, {Name: "listen", Key: "other", Rights: RightListen}}
	good := signWith("sb://host/q", now.Add(time.Hour), "listen", "other")
	token, err := keys.verify(good, now)
	if err != nil || token.rights != RightListen || !token.expires.Equal(now.Add(time.Hour)) {
		t.Fatalf("%+v, %v", token, err)
	}
	for name, bad := range map[string]struct{ token, want string }{
		"expired":        {signWith("sb://host/q", now.Add(-time.Second), "listen", "other"), "ExpiredToken"},
		"wrong key":      {signWith("sb://host/q", now.Add(time.Hour), "listen", "secret"), "InvalidSignature"},
		"unknown key":    {signWith("sb://host/q", now.Add(time.Hour), "nobody", "other"), "InvalidSignature"},
		"changed expiry": {strings.Replace(good, "se=1700003600", "se=1800000000", 1), "InvalidSignature"},
		"no signature":   {"SharedAccessSignature sr=x&se=1&skn=listen", "'sig'"},
		"other scheme":   {"Bearer x", "MalformedToken"},
	} {
		if _, err := keys.verify(bad.token, now); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want %s", name, err, bad.want)
		}
	}
}

func TestTokenCovers(t *testing.T) {
	for _, c := range []struct {
		resource, path string
		want           bool
	}{
		{"sb://host/", "q", true},
		{"sb://host", "q/$management", true},
		{"host:5672", "q", true},
		{"sb://host/q", "q", true},
		{"sb://host/q", "q/$management", true},
		{"sb://host/q", "queue", false},
		{"sb://host/q", "other", false},
		{"https://host/t/subscriptions/s?api-version=1", "t/subscriptions/s", true},
		{"https://host/t/subscriptions/s", "t", false},
	} {
		if got := (&sasToken{resource: c.resource}).covers(c.path); got != c.want {
			t.Errorf("%s covers %s: %v", c.resource, c.path, got)
		}
	}
}

func FuzzVerifyToken(f *testing.F) {
	fuzzseed.Add(f)
	f.Add(signWith("sb://host/q", time.Unix(1, 0), "root", "secret"))
	f.Add("SharedAccessSignature sr=%zz&sig=%&se=a&skn=%")
	keys := keyring{{Name: "root", Key: "secret"}}
	f.Fuzz(func(_ *testing.T, s string) { _, _ = keys.verify(s, time.Unix(0, 0)) })
}
