package infra

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// identity is a token credential with the name of an identity.
type identity string

func (i identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"none"}`)) + "." + part(fmt.Appendf(nil, `{"oid":%q}`, string(i))) + "." + part([]byte("-"))
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// gate is a proxy in front of a Cosmos DB account. It passes requests that the roles of one
// identity allow, as the service does: every request is one or several data actions on
// the account or a container (Azure Cosmos DB, data plane actions reference). It refuses
// unknown requests.
type gate struct {
	who  identity
	may  map[string][]string // actions by container, "" is the account
	next policy.Transporter

	mu      sync.Mutex
	used    map[string]bool // "action on container"
	refused []string
}

func newGate(who identity, may map[string][]string, next policy.Transporter) *gate {
	return &gate{who: who, may: may, next: next, used: map[string]bool{}}
}

func (g *gate) Do(r *http.Request) (*http.Response, error) {
	if problem := g.authenticate(r); problem != "" {
		return refuse(r, http.StatusUnauthorized, problem), nil
	}
	container, needed, err := actionsOf(r)
	if err != nil {
		return nil, err
	}
	for _, action := range needed {
		if !g.allows(action, container) {
			return refuse(r, http.StatusForbidden, fmt.Sprintf(
				"Request blocked by Auth: principal [%s] does not have required RBAC permissions to perform action [%s] on resource [%s]", g.who, action, r.URL.Path)), nil
		}
	}
	return g.next.Do(r)
}

// authenticate requires a token of this identity and refuses keys.
func (g *gate) authenticate(r *http.Request) string {
	header, err := url.QueryUnescape(r.Header.Get("Authorization"))
	if err != nil {
		return "the authorization header is not escaped"
	}
	token, _ := g.who.GetToken(r.Context(), policy.TokenRequestOptions{}) // never fails
	if header != "type=aad&ver=1.0&sig="+token.Token {
		return "not a token of " + string(g.who)
	}
	return ""
}

// allows reports whether the roles of the container or the account include the action, and
// records its use.
func (g *gate) allows(action, container string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, scope := range []string{"", container} {
		if slices.Contains(g.may[scope], action) {
			g.used[action+" on "+scope] = true
			return true
		}
	}
	g.refused = append(g.refused, action+" on "+container)
	return false
}

// report returns the used and the refused actions so far.
func (g *gate) report() (used map[string]bool, refused []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	used = map[string]bool{}
	for u := range g.used {
		used[u] = true
	}
	return used, slices.Clone(g.refused)
}

// actionsOf translates a request into data actions. An unknown request becomes an action
// that no role has.
func actionsOf(r *http.Request) (container string, actions []string, err error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) >= 4 && parts[0] == "dbs" && parts[2] == "colls" {
		container = parts[3]
	}
	header := func(name string) bool { return strings.EqualFold(r.Header.Get(name), "true") }
	unknown := "control plane: " + r.Method + " " + r.URL.Path
	switch {
	case r.Method == http.MethodGet && (len(parts) <= 2 || len(parts) == 4 || len(parts) == 5 && parts[4] == "pkranges"):
		return container, []string{"readMetadata"}, nil
	case len(parts) < 5 || parts[4] != "docs":
		return container, []string{unknown}, nil
	case len(parts) == 6:
		byMethod := map[string]string{http.MethodGet: "items/read", http.MethodPut: "items/replace", http.MethodDelete: "items/delete"}
		if action, ok := byMethod[r.Method]; ok {
			return container, []string{action}, nil
		}
	case r.Method == http.MethodGet && r.Header.Get("A-IM") != "":
		return container, []string{"readChangeFeed"}, nil
	case r.Method != http.MethodPost:
	case header("x-ms-documentdb-query"), header("x-ms-documentdb-isquery"), header("x-ms-cosmos-is-query-plan-request"):
		return container, []string{"executeQuery"}, nil
	case header("x-ms-cosmos-is-batch-request"):
		actions, err = batchActions(r)
		return container, actions, err
	case header("x-ms-documentdb-is-upsert"):
		return container, []string{"items/upsert"}, nil
	default:
		return container, []string{"items/create"}, nil
	}
	return container, []string{unknown}, nil
}

// batchActions returns one action for each operation of a transactional batch.
func batchActions(r *http.Request) ([]string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read a batch: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var operations []struct {
		Type string `json:"operationType"`
	}
	if err := json.Unmarshal(body, &operations); err != nil {
		return nil, fmt.Errorf("decode a batch: %w", err)
	}
	var actions []string
	for _, operation := range operations {
		actions = append(actions, "items/"+strings.ToLower(operation.Type))
	}
	return actions, nil
}

func refuse(r *http.Request, status int, message string) *http.Response {
	body, _ := json.Marshal(map[string]string{"code": http.StatusText(status), "message": message}) // two strings
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// scaler makes the requests of KEDA's scaler azure-cosmosdb (version 2.22, for leases of version 1).
type scaler struct {
	g        *gate
	endpoint string
}

// do sends a request below dbs/contacts/colls and decodes the reply.
func (s *scaler) do(ctx context.Context, method, path, body string, headers map[string]string, into any) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.endpoint+"dbs/contacts/colls/"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	token, _ := s.g.who.GetToken(ctx, policy.TokenRequestOptions{}) // never fails
	r.Header.Set("Authorization", url.QueryEscape("type=aad&ver=1.0&sig="+token.Token))
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2018-12-31")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	reply, err := s.g.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	switch {
	case err != nil:
	case reply.StatusCode == http.StatusOK:
		err = json.Unmarshal(said, into)
	case reply.StatusCode != http.StatusNotModified:
		err = fmt.Errorf("%s %s: %d: %s", method, path, reply.StatusCode, said)
	}
	return reply, err
}

// lag returns the metric of a trigger: the transactions in all ranges after the positions of the leases,
// but at most the threshold for each range that has any.
func (s *scaler) lag(ctx context.Context, trigger any) (int64, error) {
	of := func(name string) string { return text(at(trigger, "metadata", name)) }
	account, err := url.Parse(s.endpoint)
	if err != nil {
		return 0, err
	}
	host, _, _ := strings.Cut(account.Hostname(), ".")
	var leases struct {
		Documents []struct {
			LeaseToken, ContinuationToken string
			Version                       int
			FeedRange                     struct{ Range struct{ Min, Max string } }
		}
	}
	query := fmt.Sprintf(`{"query":"SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)","parameters":[{"name":"@prefix","value":%q}]}`, of("processorName")+host+".")
	if _, err := s.do(ctx, http.MethodPost, of("leaseContainerId")+"/docs", query, map[string]string{
		"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true",
	}, &leases); err != nil {
		return 0, err
	}
	var ranges struct {
		PartitionKeyRanges []struct{ ID, MinInclusive, MaxExclusive string }
	}
	if _, err := s.do(ctx, http.MethodGet, of("containerId")+"/pkranges", "", nil, &ranges); err != nil {
		return 0, err
	}
	total, lagging, found := int64(0), int64(0), 0
	for _, lease := range leases.Documents {
		for _, r := range ranges.PartitionKeyRanges {
			if lease.LeaseToken == "" || lease.Version != 1 || r.MinInclusive != lease.FeedRange.Range.Min || r.MaxExclusive != lease.FeedRange.Range.Max {
				continue
			}
			found++
			var feed struct {
				Documents []struct {
					LSN int64 `json:"_lsn"`
				}
			}
			reply, err := s.do(ctx, http.MethodGet, of("containerId")+"/docs", "", map[string]string{
				"A-IM": "Incremental feed", "x-ms-max-item-count": "1", "x-ms-documentdb-partitionkeyrangeid": r.ID, "If-None-Match": lease.ContinuationToken,
			}, &feed)
			if err != nil {
				return 0, err
			}
			if len(feed.Documents) == 0 {
				continue
			}
			session := reply.Header.Get("x-ms-session-token")
			last, err := strconv.ParseInt(session[strings.LastIndexAny(session, ":#")+1:], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("session %q: %w", session, err)
			}
			total, lagging = total+last-feed.Documents[0].LSN+1, lagging+1
		}
	}
	if found != len(ranges.PartitionKeyRanges) {
		return 0, fmt.Errorf("%d leases of %d ranges of %s", found, len(ranges.PartitionKeyRanges), of("containerId"))
	}
	threshold, err := strconv.ParseInt(of("changeFeedLagThreshold"), 10, 64)
	return min(total, lagging*threshold), err
}

// TestGateKnowsTheRequests: each kind of request needs exactly its own action.
func TestGateKnowsTheRequests(t *testing.T) {
	for _, tc := range []struct{ method, path, header, body, want string }{
		{"GET", "/", "", "", "readMetadata on "},
		{"GET", "/dbs/c", "", "", "readMetadata on "},
		{"GET", "/dbs/c/colls/data", "", "", "readMetadata on data"},
		{"GET", "/dbs/c/colls/data/pkranges", "", "", "readMetadata on data"},
		{"GET", "/dbs/c/colls/data/docs/1", "", "", "items/read on data"},
		{"PUT", "/dbs/c/colls/data/docs/1", "", "", "items/replace on data"},
		{"DELETE", "/dbs/c/colls/data/docs/1", "", "", "items/delete on data"},
		{"PATCH", "/dbs/c/colls/data/docs/1", "", "", "control plane: PATCH /dbs/c/colls/data/docs/1 on data"},
		{"POST", "/dbs/c/colls/data/docs", "", "", "items/create on data"},
		{"POST", "/dbs/c/colls/data/docs", "x-ms-documentdb-is-upsert", "", "items/upsert on data"},
		{"POST", "/dbs/c/colls/data/docs", "x-ms-documentdb-query", "", "executeQuery on data"},
		{"POST", "/dbs/c/colls/data/docs", "x-ms-cosmos-is-batch-request", `[{"operationType":"Create"},{"operationType":"Upsert"}]`, "items/create items/upsert on data"},
		{"GET", "/dbs/c/colls/data/docs", "A-IM", "", "readChangeFeed on data"},
		{"GET", "/dbs/c/colls/data/docs", "", "", "control plane: GET /dbs/c/colls/data/docs on data"},
		{"POST", "/dbs/c/colls", "", "", "control plane: POST /dbs/c/colls on "},
		{"DELETE", "/dbs/c/colls/data", "", "", "control plane: DELETE /dbs/c/colls/data on data"},
		{"POST", "/dbs/c/colls/data/sprocs/x", "", "", "control plane: POST /dbs/c/colls/data/sprocs/x on data"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, "https://a"+tc.path, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		if tc.header != "" {
			r.Header.Set(tc.header, "True")
		}
		container, actions, err := actionsOf(r)
		if got := strings.Join(actions, " ") + " on " + container; err != nil || got != tc.want {
			t.Errorf("%s %s %s: got %q, %v, want %q", tc.method, tc.path, tc.header, got, err, tc.want)
		}
	}
}
