package cosmosfeed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// outage is a transport whose requests fail until the service is up.
type outage struct {
	next  policy.Transporter
	up    time.Time
	fail  func(*http.Request) (*http.Response, error)
	hosts []string // of the requests sent since then
}

func (o *outage) Do(r *http.Request) (*http.Response, error) {
	if time.Now().Before(o.up) {
		return o.fail(r)
	}
	o.hosts = append(o.hosts, r.URL.Host)
	return o.next.Do(r)
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

func replying(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

// outages are the ways in which the first requests of a client fail.
var outages = map[string]func(*http.Request) (*http.Response, error){
	"refused": func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	},
	"silent":                      func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
	"service unavailable":         replying(http.StatusServiceUnavailable, `{"code":"x"}`),
	"throttled":                   replying(http.StatusTooManyRequests, `{"code":"x"}`),
	"role not yet assigned":       replying(http.StatusForbidden, `{"code":"x"}`),
	"a proxy replies with a page": replying(http.StatusOK, `<html>maintenance</html>`),
}

// A client whose first request fails works again within seconds of the end of the outage, and
// reads in its preferred region as soon.
func TestClientRecoversFromAFailedFirstAccountRead(t *testing.T) {
	for name, fail := range outages {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New(), Regions: []string{"West US", "East US"}})
				if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}}); err != nil {
					t.Fatal(err)
				}
				wire := &outage{next: srv.HTTPClient(), up: time.Now().Add(40 * time.Second), fail: fail}
				o := &azcosmos.ClientOptions{PreferredRegions: []string{"East US"}}
				o.Transport, o.Retry.TryTimeout = wire, 5*time.Second
				a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(o))
				missing := func() error {
					_, err := a.data.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("k"), "k", nil)
					if failed, ok := errors.AsType[*azcore.ResponseError](err); ok && failed.StatusCode == http.StatusNotFound {
						return nil
					}
					return fmt.Errorf("not a reply of the store: %w", err)
				}
				if missing() == nil {
					t.Fatal("read during the outage")
				}
				time.Sleep(time.Until(wire.up))
				for err := missing(); err != nil; err = missing() {
					if time.Since(wire.up) > 10*time.Second {
						t.Fatalf("%s after the outage: %v", time.Since(wire.up), err)
					}
					time.Sleep(time.Second)
				}
				time.Sleep(5 * time.Second)
				if err := errors.Join(missing(), missing()); err != nil {
					t.Error(err)
				}
				east := strings.Trim(strings.TrimPrefix(srv.RegionEndpoint("East US"), "http://"), "/")
				if last := wire.hosts[len(wire.hosts)-1]; last != east {
					t.Errorf("%s after the outage a read goes to %s, want the preferred region %s", time.Since(wire.up), last, east)
				}
			})
		})
	}
}

// Once the account was read, azcosmos keeps its regions, so no request has to make it read the account again.
func TestOutageOfAKnownAccountDelaysNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()})
		if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}}); err != nil {
			t.Fatal(err)
		}
		next := srv.HTTPClient()
		var away, refused atomic.Bool
		o := &azcosmos.ClientOptions{}
		o.Transport, o.Retry.MaxRetries = transport(func(r *http.Request) (*http.Response, error) {
			if away.Load() && strings.Trim(r.URL.Path, "/") == "" {
				refused.Store(true)
				return outages["service unavailable"](r)
			}
			return next.Do(r)
		}), -1
		a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(o))
		read := func() {
			began := time.Now()
			_, _ = a.data.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("k"), "k", nil)
			if took := time.Since(began); took > 0 {
				t.Errorf("a request took %s", took)
			}
		}
		read()
		away.Store(true)
		for range 3 {
			time.Sleep(6 * time.Minute) // azcosmos reads the account again
			read()
			time.Sleep(10 * time.Second)
			read()
		}
		if !refused.Load() {
			t.Error("the account was not read again")
		}
	})
}

// Only the account does not reply. Its limit is shorter than the deadline of a caller, which has time left for its request.
func TestSilentAccountLeavesTimeForTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()})
		if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}}); err != nil {
			t.Fatal(err)
		}
		next := srv.HTTPClient()
		o := &azcosmos.ClientOptions{}
		o.Transport, o.Retry.MaxRetries = transport(func(r *http.Request) (*http.Response, error) {
			if strings.Trim(r.URL.Path, "/") == "" {
				return outages["silent"](r)
			}
			return next.Do(r)
		}), -1
		a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(o))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		_, err := a.data.ReadItem(ctx, azcosmos.NewPartitionKeyString("k"), "k", nil)
		failed, replied := errors.AsType[*azcore.ResponseError](err)
		if took := time.Since(began); !replied || failed.StatusCode != http.StatusNotFound || took > 10*time.Second {
			t.Errorf("after %s: %v, want the reply of the store", took, err)
		}
	})
}

// The account is read again by one request. The others do not wait the second that azcosmos waits after it.
func TestOneRequestReadsTheAccountAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()})
		if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}}); err != nil {
			t.Fatal(err)
		}
		next, up := srv.HTTPClient(), time.Now().Add(time.Minute)
		o := &azcosmos.ClientOptions{}
		o.Transport = transport(func(r *http.Request) (*http.Response, error) {
			if time.Now().Before(up) {
				return outages["role not yet assigned"](r)
			}
			if strings.Trim(r.URL.Path, "/") == "" {
				time.Sleep(500 * time.Millisecond) // until all requests were sent
			}
			return next.Do(r)
		})
		a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(o))
		read := func() (took time.Duration) {
			began := time.Now()
			_, _ = a.data.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("k"), "k", nil)
			return time.Since(began)
		}
		read()
		time.Sleep(2 * time.Minute)
		var slow atomic.Int64
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if read() >= time.Second {
					slow.Add(1)
				}
			})
		}
		all.Wait()
		if slow.Load() != 1 {
			t.Errorf("%d of 10 requests waited, want one", slow.Load())
		}
	})
}

// The request that makes azcosmos read the account again has no reply of the service. The caller's policies,
// such as those that count replies, must not see it.
func TestPoliciesDoNotSeeTheRefreshOfTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()})
		if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/pk"}}); err != nil {
			t.Fatal(err)
		}
		next, up := srv.HTTPClient(), time.Now().Add(time.Minute)
		seen, reads := replies{}, 0
		o := &azcosmos.ClientOptions{}
		o.PerRetryPolicies = []policy.Policy{seen}
		o.Transport = transport(func(r *http.Request) (*http.Response, error) {
			if time.Now().Before(up) {
				return outages["refused"](r)
			}
			if strings.Trim(r.URL.Path, "/") == "" {
				reads++
			}
			return next.Do(r)
		})
		a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(o))
		for range 2 {
			_, _ = a.data.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("k"), "k", nil)
			time.Sleep(2 * time.Minute)
		}
		if reads == 0 || seen[http.StatusForbidden] != 0 || seen[http.StatusNotFound] == 0 {
			t.Errorf("replies %v and %d reads of the account, want no 403", seen, reads)
		}
	})
}

// replies counts replies by status. Its requests must not run at once.
type replies map[int]int

func (r replies) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err == nil {
		r[resp.StatusCode]++
	}
	return resp, err
}

// Options for a second client share nothing with the first, and no policy runs twice.
func TestClientOptionsOfClientOptionsHaveEachPolicyOnce(t *testing.T) {
	once := cosmosfeed.ClientOptions(nil)
	twice := cosmosfeed.ClientOptions(once)
	if len(twice.PerCallPolicies) != len(once.PerCallPolicies) || len(twice.PerRetryPolicies) != len(once.PerRetryPolicies) || twice.PerCallPolicies[0] == once.PerCallPolicies[0] {
		t.Errorf("%v %v, of %v %v", twice.PerCallPolicies, twice.PerRetryPolicies, once.PerCallPolicies, once.PerRetryPolicies)
	}
}
